package resumetest_test

import (
	"context"
	"errors"
	"testing"
	"time"

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

func TestRunGivesATimeout(t *testing.T) {
	t.Parallel()
	d := resumetest.Run(t, func(_ context.Context, run *resume.Run) (resume.Next, error) {
		require.True(t, run.TimedOut)
		require.EqualValues(t, 1, run.Timeouts)
		return resume.Done(), nil
	}, resumetest.Call{TimedOut: true})
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
