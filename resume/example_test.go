package resume_test

import (
	"context"
	"database/sql"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync"
	"time"

	_ "modernc.org/sqlite"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/resume"
)

// An agent asks for a quote, stops, and wakes when the answer arrives. Here the
// provider is a fake in this process and the database a file.
func Example() {
	provider, err := efatest.Start(efatest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer provider.Close()
	thanked := make(chan struct{})
	provider.OnSend(func(s efatest.Send) { // the supplier
		if s.ReplyTo != "" {
			close(thanked)
			return
		}
		provider.Inbound(efatest.Mail{From: s.To[0], ReplyTo: s.MessageID, Text: "100 EUR"})
	})

	mail, err := efa.New(efa.Config{BaseURL: provider.URL(), Project: provider.Project(), Key: provider.Key()})
	if err != nil {
		log.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "replywake")
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	db, err := sql.Open("sqlite", filepath.Join(dir, "agent.db"))
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = db.Close() }()

	// The step: what arrived, and what comes next. A model would be asked here.
	step := func(_ context.Context, run *resume.Run) (resume.Next, error) {
		for _, in := range run.Replies() {
			fmt.Printf("%s (%s)\n", in.Body.Text.Text(), in.Proof)
			return resume.Send(client.Outgoing{
				To: []string{run.Counterparty}, Subject: "Re: Quote", Text: "Thank you.", ReplyTo: in.Message.ID,
			}).Done(), nil
		}
		return resume.Wait(0), nil
	}

	inboxes := map[string][]string{provider.Inbox(): {provider.Address(provider.Inbox())}}
	engine, err := resume.NewSQLite(db, mail, step, resume.Config{Inboxes: inboxes})
	if err != nil {
		log.Fatal(err)
	}
	inbox, err := dedupe.NewSQLite(db, dedupe.Config{Stream: mail.Stream(), AfterCommit: engine.Wake}, engine.Route)
	if err != nil {
		log.Fatal(err)
	}
	sweeper, err := events.NewSweeper(mail.Source(), inbox, events.SweeperConfig{Start: events.FromBeginning, Every: 10 * time.Millisecond})
	if err != nil {
		log.Fatal(err)
	}

	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = engine.Run(ctx) })
	running.Go(func() { _ = sweeper.Run(ctx) })

	// nil: in a transaction of the engine's own.
	_, err = engine.Start(ctx, nil, resume.Start{
		ID: "quote-1042", Inbox: provider.Inbox(), Counterparty: "supplier@example.com",
		First: resume.Send(client.Outgoing{To: []string{"supplier@example.com"}, Subject: "Quote 1042", Text: "How much?"}),
	})
	if err != nil {
		log.Fatal(err)
	}
	<-thanked
	stop()
	running.Wait()

	w, err := engine.Workflow(context.Background(), "quote-1042")
	fmt.Println(w.Status, "after", w.Step, "mails,", err)

	// Output:
	// 100 EUR (thread and counterparty)
	// done after 2 mails, <nil>
}
