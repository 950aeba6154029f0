//go:build race

package verify_test

func raceEnabled() bool { return true }
