package resumetest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/resume"
	"github.com/replywake/replywake/resume/resumetest"
)

// buy asks for a price, and orders at the last one that it was told.
func buy(_ context.Context, run *resume.Run) (resume.Next, error) {
	if run.TimedOut || len(run.Inputs) == 0 {
		return resume.Done(), nil
	}
	last := run.Inputs[len(run.Inputs)-1]
	return resume.Send(client.Outgoing{To: []string{run.Counterparty}, ReplyTo: last.Message.ID, Text: "We order at " + last.Body.Text.Text()}).Done(), nil
}

func priceQuestion() resume.Next {
	return resume.Send(client.Outgoing{To: []string{"a@example.com"}, Text: "What does it cost?"}).Wait(24 * time.Hour)
}

func ExampleRun() {
	var t *testing.T // of a test

	d := resumetest.Run(t, buy, resumetest.Call{Inputs: []resume.Input{resumetest.Reply("100 EUR")}})
	if !d.Done || d.Sent == nil || d.Sent.Text != "We order at 100 EUR" {
		t.Errorf("it decided %+v", d)
	}
}

// priceCorrected: the supplier corrects a price while a worker answers it.
func priceCorrected() resumetest.Scenario {
	return resumetest.Scenario{
		Name: "price-corrected", Step: buy,
		Setup: func(w *resumetest.World) error {
			return errors.Join(
				w.Start(resume.Start{ID: "w1", Counterparty: "a@example.com", First: priceQuestion()}),
				w.Settle(),
				w.ReplyAndPush("w1", "100 EUR"),
			)
		},
		Actors: []resumetest.Actor{
			{Name: "worker", Do: (*resumetest.World).Work},
			{Name: "correction", Do: func(w *resumetest.World) error { return w.ReplyAndPush("w1", "90 EUR") }},
		},
		Check: func(w *resumetest.World) error {
			late, err := w.Engine().Queue(w.Context(), "", 0)
			if err != nil || len(late) > 0 {
				return err // it came after the end: a person has it
			}
			sends := w.Provider().Sends()
			if last := sends[len(sends)-1]; last.Text != "We order at 90 EUR" {
				return fmt.Errorf("the correction stands, and the last mail says: %s", last.Text)
			}
			return nil
		},
	}
}

func ExampleExplore() {
	var t *testing.T // of a test

	resumetest.Explore(t, priceCorrected(), resumetest.Options{Postgres: os.Getenv("TEST_DATABASE_URL")})
}

// The examples are right.
func TestExamples(t *testing.T) {
	t.Parallel()
	d := resumetest.Run(t, buy, resumetest.Call{Inputs: []resume.Input{resumetest.Reply("100 EUR")}})
	if !d.Done || d.Sent == nil || d.Sent.Text != "We order at 100 EUR" {
		t.Errorf("it decided %+v", d)
	}
	explore(t, priceCorrected())
}
