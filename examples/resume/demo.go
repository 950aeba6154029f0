package main

import (
	"fmt"
	"io"
)

func demo(out io.Writer) int {
	fmt.Fprintln(out, "not yet")
	return 1
}
