//go:build race

package dedupe_test

// raceDetector: SQLite in Go is ten times slower under it. The tests that have
// no concurrency of their own do less there; without it they do all.
const raceDetector = true
