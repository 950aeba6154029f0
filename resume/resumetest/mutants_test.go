package resumetest_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/internal/testdb"
	"github.com/replywake/replywake/resume/resumetest"
)

// mutant is the engine with a fault put in, and the test that finds it.
type mutant struct {
	name  string
	edits []edit
	test  string // of this package
	often bool   // also in a run that is not long
}

// edit replaces text that stands once in a package's files.
type edit struct{ pkg, old, new string }

var mutants = []mutant{
	{"fence dropped", []edit{
		{"resume", "and w.run = $3 and w.gen = $4 and w.status = 'running' {lock}", "and w.run = $3 and (w.gen = $4 or true) {lock}"},
	}, "TestB19LeaseRunsOut", true},
	{"no release when a send is accepted", []edit{
		{"resume", "		s.Deadline = now.Add(s.Wait)\n	}\n	return s.release(now)", "		s.Deadline = now.Add(s.Wait)\n	}\n	s.Status, s.Due = StatusWaiting, s.Deadline\n	return s"},
	}, "TestB8MatcherAgainstSender", true},
	{"a person's bind takes nothing along", []edit{
		{"resume", "return l.takeAlong(ctx, m.inbox, m.thread, func(other *mailRow) { l.bound(other, w, hold) })", "return nil"},
	}, "TestB9BindTakesAlong", false},
	{"an owner is not read again under the lock", []edit{
		{"resume", "l.tx.Together(ctx, append(l.locking(ids), l.find(keys, &k)...)...)", "l.lock(ctx, ids...)"},
	}, "TestB12ThreadMoves", false},
	{"consumed without being loaded", []edit{
		{"resume", "		return l, e.readMessage(ctx, l, r)", "		_ = e.readMessage(ctx, l, r)\n		return l, nil"},
	}, "TestB15UnreadableIsNotConsumed", false},
	{"the ID commits apart from its handler", []edit{
		{"dedupe", "			return err\n		}\n		if handled, err = in.handle(", "			return err\n		}\n		return nil\n	})\n	if err != nil {\n		return out, err\n	}\n	err = in.db.Tx(ctx, func(tx sqldb.Tx) (err error) {\n		if handled, err = in.handle("},
	}, "TestB1CorrectionWhileAnswering", true},
	{"a key without the run's ID", []edit{
		{"resume", `w.run+"-"+strconv`, `w.id+"-"+strconv`},
	}, "TestB33IDUsedAgain", false},
	{"only who waits is a candidate", []edit{
		{"resume", "and (w.finished_at is null or w.finished_at > $4) order by w.id {lock}", "and w.status = 'waiting' and (w.finished_at is null or w.finished_at > $4) order by w.id {lock}"},
	}, "TestB10BusyWorkflowIsACandidate", false},
	{"candidates are counted outside the lock", []edit{
		{"resume", "	if err := l.e.lockKeys(ctx, l.tx, l.e.addressKey(m.inbox, from)); err != nil {\n		return err\n	}\n", ""},
	}, "TestB10StartAgainstSenderRule", false},
	{"an arrival does not wake who waits", []edit{
		{"resume", "	case s.Status == StatusWaiting:\n		s.Status, s.Due = StatusRunnable, at\n", ""},
	}, "TestB4WaitAgainstReply", false},
	{"a timeout commits over a newer reply", []edit{
		{"resume", "return s.TimedOut && s.Arrived > arrived", "return s.TimedOut && s.Arrived > arrived+1000"},
	}, "TestDeadlineAgainstReply", false},
	{"a send confirms another step", []edit{
		{"resume", "func (s state) accepted(step int64, now time.Time) state {\n	if s.Step != step || s.Status", "func (s state) accepted(step int64, now time.Time) state {\n	if s.Status"},
		{"resume", "now == nil || now.state != sendPlanned && now.state != sendHeld", "now == nil"},
	}, "TestB20SenderStalls", false},
	{"a repeated send has other bytes", []edit{
		{"resume", "ReplyTo: s.replyTo, Body: s.body}", "ReplyTo: s.replyTo, Body: other(s)}"},
		{"resume", "// claimSends leases", resealed + "// claimSends leases"},
	}, "TestB20SenderStalls", false},
	{"a cancel drops a send that was attempted", []edit{
		{"resume", "			and state = 'planned' and first_attempt is null`", "			and state = 'planned'`"},
	}, "TestCancel/against-sender", false},
	{"done over a pending input", []edit{
		{"resume", "	case s.pending() || s.Kick:\n", "	case !s.Finish && s.pending() || s.Kick:\n"},
	}, "TestB12DoneAgainstReply", false},
	{"a foreign owner of a thread is not noticed", []edit{
		{"resume", "	if err != nil || o == (owner{w.id, w.run}) {\n", "	if err != nil || true {\n"},
	}, "TestB11ForeignThread", false},
	{"an undone bind still counts", []edit{
		{"resume", "	w.state = w.takeAway(1+int64(len(along)), l.now)\n", ""},
	}, "TestTwoPeople/bind-against-undo", false},
	{"two matchers place the same mail", []edit{
		{"resume", "	if now == nil || now.place != placeUnplaced {\n", "	if now == nil {\n"},
	}, "TestB9TwoMailsOnANewThread", false},
	{"a heartbeat extends another's lease", []edit{
		{"resume", "and w.gen = r.held_gen and w.status = 'running' returning", "and w.status = 'running' returning"},
	}, "TestHeartbeatAgainstNextOwner", false},
	{"adopt not under the lock", []edit{
		{"resume", "		if err := l.e.lockKeys(ctx, l.tx, l.e.threadKey(s.inbox, thread)); err != nil {\n			return nil, nil, err\n		}\n", ""},
		{"resume", "(bool, error) {\n	if err := l.e.lockKeys(ctx, l.tx, l.e.threadKey(m.inbox, m.thread)); err != nil {\n		return false, err\n	}\n", "(bool, error) {\n"},
		{"resume", "		if err := e.lockKeys(ctx, l.tx, e.threadKey(m.inbox, m.thread)); err != nil {\n			return err\n		}\n", ""},
	}, "TestB8MatcherAgainstBind", true},
}

// resealed is what a repeated send should not be.
const resealed = `func other(s *sendRow) []byte {
	b := append([]byte(nil), s.body...)
	for i := range b {
		if s.attempts > 1 && b[i] == 'q' {
			b[i] = 'Q'
		}
	}
	return b
}

`

// The explorer finds every fault that is put into the engine, and what it
// prints runs it again.
func TestMutants(t *testing.T) {
	t.Parallel()
	if os.Getenv("RESUMETEST_REPLAY") != "" || os.Getenv("RESUMETEST_MUTANT") != "" {
		t.Skip("not within a replay")
	}
	if testing.Short() {
		t.Skip("builds programs")
	}
	built := 0
	for _, m := range mutants {
		if !resumetest.Long() && (!m.often || raceEnabled && built == 2) {
			continue
		}
		built++
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			t.Parallel()
			m.find(t, testdb.URL(t))
		})
	}
}

// Every fault still has its place in the engine.
func TestMutantsFit(t *testing.T) {
	t.Parallel()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	for _, m := range mutants {
		texts := map[string]string{}
		for _, e := range m.edits {
			file := e.find(t, root, texts)
			texts[file] = strings.Replace(texts[file], e.old, e.new, 1)
		}
	}
}

var replayLine = regexp.MustCompile(`RESUMETEST_REPLAY='([^']+)'`)

func (m mutant) find(t *testing.T, url string) {
	t.Helper()
	program := m.build(t)
	out := m.run(t, program, url, "")
	require.Contains(t, out, "broke", "not found")
	line := replayLine.FindStringSubmatch(out)
	require.NotNil(t, line, out)
	require.Contains(t, m.run(t, program, url, line[1]), "broke", "%s does not show it again", line[1])
	t.Log("found, and found again by", line[1])
	total.found()
}

// build makes a test program of this package over the mutant.
func (m mutant) build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	texts, replace := map[string]string{}, map[string]string{} // by file
	for _, e := range m.edits {
		file := e.find(t, root, texts)
		texts[file] = strings.Replace(texts[file], e.old, e.new, 1)
		replace[file] = filepath.Join(dir, filepath.Base(file))
		require.NoError(t, os.WriteFile(replace[file], []byte(texts[file]), 0o600))
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600))
	program := filepath.Join(dir, "mutant.test")
	args := []string{"test", "-c", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program}
	if raceEnabled { // all else is built that way already
		args = append(args, "-race")
	}
	cmd := exec.CommandContext(t.Context(), "go", append(args, ".")...) //nolint:gosec // arguments of ours
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	return program
}

// find is the one file of the package in which the text to replace stands once.
func (e edit) find(t *testing.T, root string, texts map[string]string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, e.pkg, "*.go"))
	require.NoError(t, err)
	var found []string
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		if texts[file] == "" {
			b, err := os.ReadFile(file)
			require.NoError(t, err)
			texts[file] = string(b)
		}
		for range strings.Count(texts[file], e.old) {
			found = append(found, file)
		}
	}
	require.Len(t, found, 1, "in package %s: %s", e.pkg, e.old)
	return found[0]
}

// run runs the mutant's test, which must fail.
func (m mutant) run(t *testing.T, program, url, replay string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "-test.run", "^"+strings.ReplaceAll(m.test, "/", "$/^")+"$")
	cmd.Env = append(os.Environ(), "TEST_DATABASE_URL="+url, "RESUMETEST_MUTANT=1", "RESUMETEST_REPLAY="+replay)
	out, err := cmd.CombinedOutput()
	require.Error(t, err, "%s passes over the mutant", m.test)
	return string(out)
}
