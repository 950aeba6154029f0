package resume_test

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/resume"
)

// agent is what the package's first example builds, for the others.
type agent struct {
	*resume.SQLiteEngine
	Inbox string
	close func()
}

// runAgent runs an agent at a provider until it is closed.
func runAgent(provider *efatest.Server, step resume.Step) *agent {
	mail := must(efa.New(efa.Config{BaseURL: provider.URL(), Project: provider.Project(), Key: provider.Key()}))
	dir := must(os.MkdirTemp("", "replywake"))
	db := must(sql.Open("sqlite", filepath.Join(dir, "agent.db")))
	inboxes := map[string][]string{provider.Inbox(): {provider.Address(provider.Inbox())}}
	engine := must(resume.NewSQLite(db, mail, step, resume.Config{Inboxes: inboxes, Poll: 5 * time.Millisecond}))
	inbox := must(dedupe.NewSQLite(db, dedupe.Config{Stream: mail.Stream(), AfterCommit: engine.Wake}, engine.Route))
	sweeper := must(events.NewSweeper(mail.Source(), inbox, events.SweeperConfig{Start: events.FromBeginning, Every: 5 * time.Millisecond}))

	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = engine.Run(ctx) })
	running.Go(func() { _ = sweeper.Run(ctx) })
	return &agent{engine, provider.Inbox(), func() {
		stop()
		running.Wait()
		_ = db.Close()
		_ = os.RemoveAll(dir)
		provider.Close()
	}}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
