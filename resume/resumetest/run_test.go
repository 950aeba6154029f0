package resumetest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/resume"
	"github.com/replywake/replywake/resume/resumetest"
)

func TestRunGivesTheFirstCall(t *testing.T) {
	t.Parallel()
	d := resumetest.Run(t, func(_ context.Context, run *resume.Run) (resume.Next, error) {
		require.Empty(t, run.Inputs)
		require.Equal(t, "quote", run.Kind)
		require.Zero(t, run.Step)
		return resume.Send(mailTo(run.Counterparty, "Quote request")).Wait(48 * time.Hour).Save(map[string]int{"asked": 1}), nil
	}, resumetest.Call{Kind: "quote"})
	require.NoError(t, d.Err)
	require.Equal(t, mailTo(supplier, "Quote request"), *d.Sent)
	require.Equal(t, 48*time.Hour, d.Wait)
	require.JSONEq(t, `{"asked":1}`, string(d.State))
	require.False(t, d.Done)
}

func TestRunGivesInputsAndState(t *testing.T) {
	t.Parallel()
	other := resumetest.Reply("me too")
	other.Message.From = client.NewUntrusted(colleague)
	d := resumetest.Run(t, func(_ context.Context, run *resume.Run) (resume.Next, error) {
		require.Len(t, run.Inputs, 3)
		require.Equal(t, resume.InputSignal, run.Inputs[0].Kind)
		require.Equal(t, []byte("paid"), run.Inputs[0].Data)
		replies := run.Replies()
		require.Equal(t, "100 EUR", replies[0].Body.Text.Text())
		require.Equal(t, resume.ProofThreadAndSender, replies[0].Proof)
		require.Equal(t, resume.ProofThread, replies[1].Proof)
		var state int
		require.NoError(t, run.Unmarshal(&state))
		require.Equal(t, 7, state)
		return resume.Wait(time.Hour).Save(8), nil
	}, resumetest.Call{
		State:  7,
		Inputs: []resume.Input{resumetest.Reply("100 EUR"), other, {Kind: resume.InputSignal, Signal: "payment", Data: []byte("paid")}},
	})
	require.NoError(t, d.Err)
	require.Nil(t, d.Sent)
	require.Equal(t, time.Hour, d.Wait)
	require.Equal(t, "8", string(d.State))
}

func TestRunGivesWhatWentWrong(t *testing.T) {
	t.Parallel()
	for _, kind := range []resume.InputKind{resume.InputBounce, resume.InputRejected, resume.InputSendError} {
		d := resumetest.Run(t, func(_ context.Context, run *resume.Run) (resume.Next, error) {
			require.Len(t, run.Inputs, 1)
			require.Equal(t, kind, run.Inputs[0].Kind)
			return resume.Review("look at this"), nil
		}, resumetest.Call{Inputs: []resume.Input{{Kind: kind}}})
		require.Equal(t, resumetest.Decision{Review: "look at this"}, d, kind)
	}
}

// written is a reply that the provider says was sent at that time.
func written(at time.Time) resume.Input {
	in := resumetest.Reply("100 EUR")
	in.Message.At = at
	return in
}

func TestRunGivesInputsThatMayAnswerTheNewestMail(t *testing.T) {
	t.Parallel()
	noon := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	reply := resumetest.Reply("100 EUR")
	for name, inputs := range map[string][]resume.Input{
		"replies":          {reply, reply, reply},
		"at given times":   {written(noon), written(noon.Add(2 * time.Hour)), reply},
		"in another order": {written(noon), written(noon.Add(-24 * time.Hour))},
		"in the future":    {written(time.Now().Add(time.Hour)), reply},
		"with others":      {reply, {Kind: resume.InputBounce}, {Kind: resume.InputSignal, Signal: "payment"}},
		"rejected":         {{Kind: resume.InputRejected}},
		"send error":       {{Kind: resume.InputSendError}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []resume.Input
			resumetest.Run(t, func(_ context.Context, run *resume.Run) (resume.Next, error) {
				got = run.Inputs
				for _, in := range got {
					require.Equal(t, run.Step, in.Step, in.Kind)
				}
				return resume.Done(), nil
			}, resumetest.Call{Inputs: inputs})
			require.Len(t, got, len(inputs))
		})
	}
}

func TestRunKeepsTheTimesOfReplies(t *testing.T) {
	t.Parallel()
	noon := time.Date(2025, 3, 1, 12, 0, 0, 0, time.UTC)
	resumetest.Run(t, func(ctx context.Context, run *resume.Run) (resume.Next, error) {
		history, err := run.History(ctx)
		require.NoError(t, err)
		require.Len(t, history, 4)
		require.True(t, history[0].Outbound)
		require.True(t, history[0].At.Before(noon), "asked at %v", history[0].At)
		require.Equal(t, noon, history[1].At)
		require.Equal(t, noon.Add(2*time.Hour), history[2].At)
		require.True(t, history[3].At.After(history[2].At), "a reply without a time was written at %v", history[3].At)
		return resume.Done(), nil
	}, resumetest.Call{Inputs: []resume.Input{written(noon), written(noon.Add(2 * time.Hour)), resumetest.Reply("and?")}})
}

// fatal is a test that notes what ends it.
type fatal struct {
	testing.TB
	said string
}

func (f *fatal) Fatalf(format string, args ...any) {
	f.said = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestRunSaysWhichInputIsMissing(t *testing.T) {
	t.Parallel()
	reply, echo, twice := resumetest.Reply("100 EUR"), resumetest.Reply("me"), resumetest.Reply("again")
	echo.Message.Outbound = true
	twice.Message.ID = "m1"
	bounce := resume.Input{Kind: resume.InputBounce}
	signal := resume.Input{Kind: resume.InputSignal, Signal: "payment"}
	for name, c := range map[string]struct {
		inputs  []resume.Input
		missing string
		cause   string
	}{
		"reply to a mail that failed":    {[]resume.Input{reply, {Kind: resume.InputSendError}}, "reply (Inputs[0])", "never left"},
		"reply to a rejected mail":       {[]resume.Input{reply, {Kind: resume.InputRejected}}, "reply (Inputs[0])", "never left"},
		"bounce of a mail that failed":   {[]resume.Input{{Kind: resume.InputSendError}, bounce}, "bounce (Inputs[1])", "never left"},
		"rejection of a mail that fails": {[]resume.Input{{Kind: resume.InputSendError}, {Kind: resume.InputRejected}}, "rejected (Inputs[1])", "at most one"},
		"echo":                           {[]resume.Input{reply, echo}, "reply (Inputs[1])", "inbox's own"},
		"echo alone":                     {[]resume.Input{echo}, "reply (Inputs[0])", "inbox's own"},
		"the same message":               {[]resume.Input{twice, twice}, "reply (Inputs[1])", "another's ID"},
		"the same signal":                {[]resume.Input{signal, reply, signal}, "signal (Inputs[2])", "another's ID"},
		"no failure":                     {[]resume.Input{reply, {Kind: resume.InputBounce, Delivery: client.DeliveryDelivered}}, "bounce (Inputs[1])", "no failure"},
		"two bounces":                    {[]resume.Input{bounce, bounce}, "bounce (Inputs[1])", "said before"},
		"no kind":                        {[]resume.Input{reply, {}}, " (Inputs[1])", "no such kind"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fatal{TB: t}
			ended := make(chan struct{})
			called := false
			go func() {
				defer close(ended)
				resumetest.Run(f, func(context.Context, *resume.Run) (resume.Next, error) {
					called = true
					return resume.Done(), nil
				}, resumetest.Call{Inputs: c.inputs})
			}()
			<-ended
			require.Contains(t, f.said, c.missing)
			require.Contains(t, f.said, c.cause)
			require.False(t, called)
		})
	}
}

func TestRunJoinsWritesOnSQLite(t *testing.T) {
	t.Parallel()
	joined := false
	d := resumetest.Run(t, func(_ context.Context, run *resume.Run) (resume.Next, error) {
		run.InSQL(func(ctx context.Context, tx *sql.Tx) error {
			joined = true
			_, err := tx.ExecContext(ctx, "create table orders (id text)")
			return err
		})
		return resume.Done(), nil
	}, resumetest.Call{})
	require.NoError(t, d.Err)
	require.True(t, joined)
	d = resumetest.Run(t, func(_ context.Context, run *resume.Run) (resume.Next, error) {
		run.InPostgres(func(context.Context, pgx.Tx) error { return nil })
		return resume.Done(), nil
	}, resumetest.Call{})
	require.ErrorContains(t, d.Err, "use InSQL")
}

func TestRunGivesATimeout(t *testing.T) {
	t.Parallel()
	d := resumetest.Run(t, func(_ context.Context, run *resume.Run) (resume.Next, error) {
		require.True(t, run.TimedOut)
		require.EqualValues(t, 1, run.Timeouts)
		require.EqualValues(t, 1, run.Step)
		return resume.Done(), nil
	}, resumetest.Call{Timeouts: 1})
	require.Equal(t, resumetest.Decision{Done: true}, d)
}

func TestRunGivesASecondReminderItsThread(t *testing.T) {
	t.Parallel()
	d := resumetest.Run(t, func(ctx context.Context, run *resume.Run) (resume.Next, error) {
		require.True(t, run.TimedOut)
		require.EqualValues(t, 2, run.Timeouts)
		history, err := run.History(ctx)
		require.NoError(t, err)
		require.Len(t, history, 1)
		mail := mailTo(run.Counterparty, "Reminder 2")
		mail.ReplyTo = history[0].ID
		return resume.Send(mail).Wait(time.Hour), nil
	}, resumetest.Call{Timeouts: 2})
	require.NoError(t, d.Err)
	require.Equal(t, "Reminder 2", d.Sent.Subject)
	require.NotEmpty(t, d.Sent.ReplyTo)
	require.Equal(t, time.Hour, d.Wait)
}

func TestRunGivesAReplyAfterTimeouts(t *testing.T) {
	t.Parallel()
	d := resumetest.Run(t, func(_ context.Context, run *resume.Run) (resume.Next, error) {
		require.False(t, run.TimedOut)
		require.EqualValues(t, 2, run.Timeouts)
		require.Len(t, run.Replies(), 1)
		require.Equal(t, run.Step, run.Inputs[0].Step)
		return resume.Done(), nil
	}, resumetest.Call{Timeouts: 2, Inputs: []resume.Input{resumetest.Reply("sorry")}})
	require.Equal(t, resumetest.Decision{Done: true}, d)
}

func TestRunReturnsErrors(t *testing.T) {
	t.Parallel()
	sorry := errors.New("sorry")
	d := resumetest.Run(t, func(context.Context, *resume.Run) (resume.Next, error) { return resume.Done(), sorry }, resumetest.Call{})
	require.ErrorIs(t, d.Err, sorry)
	require.False(t, d.Done)
	d = resumetest.Run(t, func(context.Context, *resume.Run) (resume.Next, error) { return resume.Next{}, nil }, resumetest.Call{})
	require.ErrorContains(t, d.Err, "returned no Next")
	d = resumetest.Run(t, func(context.Context, *resume.Run) (resume.Next, error) {
		return resume.Send(mailTo(supplier, "bye")).Done(), nil
	}, resumetest.Call{})
	require.True(t, d.Done)
	require.NotNil(t, d.Sent)
}

// What a provider would not take is an Err.
func TestRunRefusesMailThatCannotBeSent(t *testing.T) {
	t.Parallel()
	for want, out := range map[string]client.Outgoing{
		"no recipient": {Text: "hello"},
		"alone":        {To: []string{"Bob <bob@example.com>"}, Text: "hello"},
		"line break":   {To: []string{"bob@example.com"}, Subject: "a\nb", Text: "hello"},
	} {
		step := func(context.Context, *resume.Run) (resume.Next, error) { return resume.Send(out), nil }
		d := resumetest.Run(t, step, resumetest.Call{})
		require.ErrorContains(t, d.Err, want)
		require.Nil(t, d.Sent)
	}
}

func TestRunSaysWhatPanicked(t *testing.T) {
	t.Parallel()
	d := resumetest.Run(t, func(context.Context, *resume.Run) (resume.Next, error) { panic("on purpose") }, resumetest.Call{})
	require.ErrorContains(t, d.Err, "on purpose")
	require.ErrorContains(t, d.Err, "TestRunSaysWhatPanicked")
}
