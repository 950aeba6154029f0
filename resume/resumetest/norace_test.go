//go:build !race

package resumetest_test

const raceEnabled = false
