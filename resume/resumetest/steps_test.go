package resumetest_test

import (
	"context"
	"errors"
	"time"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// afterHold is when what a person bound is due.
const afterHold = 11 * time.Second

// waits takes what comes and says nothing.
func waits(context.Context, *resume.Run) (resume.Next, error) { return resume.Wait(0), nil }

// endsOne is done with the first reply of w1; others wait on.
func endsOne(ctx context.Context, run *resume.Run) (resume.Next, error) {
	if run.ID == "w1" {
		return ends(ctx, run)
	}
	return waits(ctx, run)
}

// reviewsFirst asks a person about the first reply, and then waits.
func reviewsFirst(_ context.Context, run *resume.Run) (resume.Next, error) {
	var asked bool
	if err := run.Unmarshal(&asked); err != nil {
		return resume.Next{}, err
	}
	if !asked {
		return resume.Review("is this right?").Save(true), nil
	}
	return resume.Wait(0), nil
}

// endsRejected is done once it is told that a person refused its mail.
func endsRejected(_ context.Context, run *resume.Run) (resume.Next, error) {
	if len(run.Inputs) == 1 && run.Inputs[0].Kind == resume.InputRejected {
		return resume.Done(), nil
	}
	return resume.Wait(0), nil
}

// told answers, unless it was told that it cannot.
func told(ctx context.Context, run *resume.Run) (resume.Next, error) {
	for _, in := range run.Inputs {
		if in.Kind == resume.InputSendError {
			return resume.Review("not my thread"), nil
		}
	}
	return acks(ctx, run)
}

// intrudes answers a message that its state names.
func intrudes(_ context.Context, run *resume.Run) (resume.Next, error) {
	var state struct{ Message string }
	if err := run.Unmarshal(&state); err != nil || state.Message == "" {
		return resume.Wait(0), err
	}
	mail := mailTo(run.Counterparty, "hello")
	mail.ReplyTo = state.Message
	return resume.Send(mail), nil
}

// reminds waits for a day, reminds once, and gives up after another.
func reminds(_ context.Context, run *resume.Run) (resume.Next, error) {
	switch ids := replies(run); {
	case len(ids) > 0:
		return answer(run, ids).Wait(24 * time.Hour), nil
	case run.TimedOut && run.Timeouts == 1:
		return resume.Send(mailTo(run.Counterparty, "reminder")).Wait(24 * time.Hour), nil
	case run.TimedOut:
		return resume.Done(), nil
	}
	return resume.Wait(24 * time.Hour), nil
}

// answeredAtOnce answers every question within the provider.
func answeredAtOnce(from string) func(*world) error {
	return func(w *world) error {
		w.Provider().OnSend(func(s efatest.Send) {
			if s.Subject != "ack" {
				w.Provider().Inbound(efatest.Mail{From: from, ReplyTo: s.MessageID, Text: "100 EUR"})
			}
		})
		return nil
	}
}

// twoOnAThread are two mails on a new thread.
func twoOnAThread(w *world) error {
	first := w.Inbound(efatest.Mail{From: supplier, Text: "one"})
	second := w.Inbound(efatest.Mail{From: supplier, Text: "two", Thread: first.ThreadID})
	return errors.Join(w.Push(first.EventID), w.Push(second.EventID))
}
