package resume

import (
	"context"

	"github.com/replywake/replywake/internal/sqldb"
)

// ReadsAMinute changes how much unmatched mail of an inbox an engine reads.
func ReadsAMinute(e *Engine, n int) { e.reads.most = n }

// Tidy tidies until nothing is left to do, batch rows at a time.
func Tidy(ctx context.Context, e *Engine, batch int) error {
	for {
		if more, err := e.tidyRound(ctx, batch); err != nil || !more {
			return err
		}
	}
}

// TidyStatements are what tidying runs, with their arguments.
func TidyStatements(e *Engine) map[string][]any {
	out := map[string][]any{}
	for _, job := range e.tidyJobs(tidyBatch) {
		out[job.query] = job.args
	}
	return out
}

// EventStatements look an event up.
func EventStatements(e *Engine) map[string][]any {
	args := []any{e.cfg.Name, "evt_1"}
	return map[string][]any{e.st.MailByEvent: args, e.st.MailRead: args, e.st.HistoryEvent: args}
}

// Explain runs a statement, to see a plan.
func Explain(ctx context.Context, e *Engine, query string, args []any, row func(scan sqldb.Scan) error) error {
	return e.db.Read().Query(ctx, query, args, row)
}
