package resume_test

import (
	"context"
	"fmt"
	"time"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/resume"
)

// A supplier with two open questions writes "yes, go ahead" in a mail of its
// own. Nobody guesses which one is meant: a person is shown both.
func ExampleEngine_Queue() {
	ctx := context.Background()
	provider := must(efatest.Start(efatest.Config{}))
	answered := make(chan struct{})
	step := func(_ context.Context, run *resume.Run) (resume.Next, error) {
		for _, in := range run.Replies() {
			fmt.Printf("%s: %s (%s)\n", run.ID, in.Body.Text.Text(), in.Proof)
			close(answered)
		}
		return resume.Done(), nil
	}
	agent := runAgent(provider, step)
	defer agent.close()

	asked := make(chan struct{}, 2)
	provider.OnSend(func(efatest.Send) { asked <- struct{}{} })
	for _, subject := range []string{"Order 1: bolts", "Order 2: nuts"} {
		first := resume.Send(client.Outgoing{To: []string{"supplier@example.com"}, Subject: subject, Text: "May we?"})
		must(agent.Start(ctx, nil, resume.Start{ID: subject[:len("Order")] + subject[6:7], Inbox: agent.Inbox, Counterparty: "supplier@example.com", First: first}))
		<-asked
	}
	provider.Inbound(efatest.Mail{From: "supplier@example.com", Text: "Yes, go ahead."})

	// A person's page shows the queue; here it is looked at until it has an item.
	var queue []resume.Item
	for len(queue) == 0 {
		time.Sleep(5 * time.Millisecond)
		queue = must(agent.Queue(ctx, "", 0))
	}
	item := queue[0]
	fmt.Println(item.Reason)
	for _, c := range item.Candidates {
		fmt.Println("-", c.Workflow, c.Subject)
	}

	// The person decides. Undo is possible until the hold is over.
	if err := agent.Bind(ctx, item.EventID, "Order2", "ann"); err != nil {
		panic(err)
	}
	if err := agent.RunNow(ctx, "Order2", "ann"); err != nil { // no need to wait for the hold
		panic(err)
	}
	<-answered
	fmt.Println(must(agent.Decisions(ctx, item.EventID))[0].Detail)

	// Output:
	// several_candidates
	// - Order1 Order 1: bolts
	// - Order2 Order 2: nuts
	// Order2: Yes, go ahead. (person)
	// to Order2 by ann
}
