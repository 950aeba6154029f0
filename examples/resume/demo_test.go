package main

import (
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDemonstration(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ env, provider, often string }{
		"with nothing set": {"", "a fake of Email for Agents", "once under another event ID"},
		"on Goshen Email":  {"PROVIDER=goshen", "a fake of Goshen Email", "  left out  one message under two event IDs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path, err := binary()
			require.NoError(t, err)
			temp := t.TempDir()
			cmd := exec.CommandContext(t.Context(), path)
			cmd.Env = append(cleanEnv(), "TMPDIR="+temp, c.env)
			began := time.Now()
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			t.Logf("in %s:\n%s", time.Since(began), out)
			for _, want := range []string{
				"0 lost", "0 doubled", "several_candidates", "kill -9", "1 send came again after the crash", c.provider, c.often,
			} {
				require.Contains(t, string(out), want)
			}
			for _, id := range []string{"normal", "correction", "new-thread", "duplicate", "ambiguous-1", "ambiguous-2", "crash"} {
				require.Regexp(t, `\n +`+id+` +\d+ +\d+ +\d+\n`, string(out), "a row of the table")
				require.Contains(t, string(out), "\n  "+id+": ", "a timeline")
			}
			require.NotRegexp(t, `[ \t]\n`, string(out), "no line ends in a blank")
			left, err := os.ReadDir(temp)
			require.NoError(t, err)
			require.Empty(t, left, "it leaves nothing behind")
		})
	}
}

// The table must be able to say that something is wrong.
func TestVerdict(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*tally)
		want   [2]int // lost, doubled
	}{
		"clean":                 {func(*tally) {}, [2]int{0, 0}},
		"not acknowledged":      {func(y *tally) { y.acks["m1"] = 0 }, [2]int{1, 0}},
		"acknowledged 3 times":  {func(y *tally) { y.acks["m1"] = 3 }, [2]int{0, 2}},
		"no question":           {func(y *tally) { y.of("w").questions = 0 }, [2]int{1, 0}},
		"the question twice":    {func(y *tally) { y.of("w").questions = 2 }, [2]int{0, 1}},
		"mail to a stranger":    {func(y *tally) { y.stray = 1 }, [2]int{0, 1}},
		"one lost, one doubled": {func(y *tally) { y.acks["m1"], y.acks["m2"] = 0, 2 }, [2]int{1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			y := &tally{acks: map[string]int{"m1": 1, "m2": 1}, workflows: map[string]*workflowTally{"w": {questions: 1}}}
			c.change(y)
			lost, doubled := y.verdict()
			require.Equal(t, c.want, [2]int{lost, doubled})
		})
	}
}
