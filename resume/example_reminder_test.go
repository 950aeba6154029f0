package resume_test

import (
	"context"
	"fmt"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// A ladder of reminders: two of them, a day apart, then a person is asked. The
// supplier answers the second.
func ExampleNext_Wait() {
	const day = 50 * time.Millisecond // days pass quickly here
	provider := must(efatest.Start(efatest.Config{}))
	provider.OnSend(func(s efatest.Send) {
		fmt.Println("sent:", s.Subject)
		if s.Subject == "Reminder 2" {
			provider.Inbound(efatest.Mail{From: s.To[0], ReplyTo: s.MessageID, Text: "Sorry! 100 EUR."})
		}
	})

	answered := make(chan struct{})
	step := func(_ context.Context, run *resume.Run) (resume.Next, error) {
		switch {
		case len(run.Replies()) > 0:
			fmt.Println("answer:", run.Replies()[0].Body.Text.Text())
			close(answered)
			return resume.Done(), nil
		case run.TimedOut && run.Timeouts <= 2:
			return resume.Send(client.Outgoing{
				To: []string{run.Counterparty}, Subject: fmt.Sprintf("Reminder %d", run.Timeouts), Text: "Did you see our question?",
			}).Wait(day), nil
		}
		return resume.Review("no answer after two reminders"), nil
	}
	agent := runAgent(provider, step)
	defer agent.close()

	first := resume.Send(client.Outgoing{To: []string{"supplier@example.com"}, Subject: "Quote 1042", Text: "How much?"}).Wait(day)
	must(agent.Start(context.Background(), nil, resume.Start{ID: "quote-1042", Inbox: agent.Inbox, Counterparty: "supplier@example.com", First: first}))
	<-answered

	// Output:
	// sent: Quote 1042
	// sent: Reminder 1
	// sent: Reminder 2
	// answer: Sorry! 100 EUR.
}
