//go:build !race

package dedupe_test

const raceDetector = false
