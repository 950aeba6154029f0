// Package readme holds the tests of README.md and docs/: every Go snippet
// compiles, what is said to stand in a file stands there, every count of lines
// is measured, and every link leads somewhere.
package readme
