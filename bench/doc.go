// Package bench measures Replywake side by side with what one would write by
// hand, in one run, so that the ratios hold on any machine. docs/performance.md
// has the table and the commands.
package bench
