package resumetest

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/resume"
)

// polls are what finds due work, and the index that each should use.
var polls = map[resume.Job]string{resume.JobWork: "workflows_due", resume.JobSend: "sends_due", resume.JobMatch: "mail_unplaced"}

// plansOf are the plans of an engine's polls, by index; they are the same for
// all databases of a kind.
var plansOf = struct {
	sync.Mutex
	by map[string]map[string]string
}{by: map[string]map[string]string{}}

func (r *rig) explain(p *process) (map[string]string, error) {
	plansOf.Lock()
	defer plansOf.Unlock()
	if known := plansOf.by[r.store.name()]; known != nil {
		return known, nil
	}
	plans := map[string]string{}
	for job, index := range polls {
		query, err := pollOf(p.engine, job)
		if err != nil {
			return nil, err
		}
		if plans[index], err = r.store.plan(context.Background(), query, argsFor(query)); err != nil {
			return nil, fmt.Errorf("explain a poll: %w", err)
		}
	}
	plansOf.by[r.store.name()] = plans
	return plans, nil
}

// pollOf is the statement with which an engine looks for due work.
func pollOf(e *resume.Engine, job resume.Job) (poll string, err error) {
	_, err = e.Once(sqldb.WithHook(context.Background(), func(point string) error {
		if strings.Contains(point, " limit ") && strings.Contains(point, "due <= ") {
			poll = point
		}
		return nil
	}), job)
	return poll, err
}

var placeholder = regexp.MustCompile(`[$?](\d+)`)

// argsFor are values for a poll's placeholders: an engine's name and numbers.
func argsFor(query string) []any {
	most := 1
	for _, m := range placeholder.FindAllStringSubmatch(query, -1) {
		n, _ := strconv.Atoi(m[1]) // digits only
		most = max(most, n)
	}
	args := []any{"x"}
	for range most - 1 {
		args = append(args, int64(1))
	}
	return args
}
