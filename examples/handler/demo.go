package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/verify"
)

// demo plays the provider, and somebody who would like to be it.
type demo struct {
	out      io.Writer
	provider *efatest.Server
	url      string // of the service
	log      bytes.Buffer
}

// demonstrate returns an error if the service takes what it must not, or does
// not take what it must.
func demonstrate(ctx context.Context, out io.Writer) (err error) {
	d := &demo{out: out}
	if d.provider, err = efatest.Start(efatest.Config{Manual: true}); err != nil { //nolint:contextcheck // it lives until Close
		return err
	}
	defer d.provider.Close()
	service, err := newService(d.provider.Secret(), slog.New(slog.NewTextHandler(&d.log, nil)))
	if err != nil {
		return err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	d.url = "http://" + l.Addr().String()
	serving, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- serve(serving, l, service) }()
	err = d.play(ctx)
	stop()
	return errors.Join(err, <-ended)
}

func (d *demo) play(ctx context.Context) error {
	_, _ = fmt.Fprintf(d.out, "A help desk with a webhook, %s/hooks/efa. One line of it is the verifier.\n\n", d.url)
	const refused = http.StatusBadRequest
	body := []byte(`{"id":"evt_9","type":"message.received","data":{"inbox_id":"ibx_main","message_id":"msg_9"}}`)
	genuine, now := verify.RawSecret(d.provider.Secret()), time.Now()
	for _, step := range []struct {
		name, story string
		want        int
		deliver     func() (int, error)
	}{
		{"genuine", "the provider (a fake in this process) delivers a message", http.StatusNoContent, func() (int, error) {
			d.provider.Webhook(d.url+"/hooks/efa", efatest.MessageReceived) //nolint:contextcheck // it delivers until Close
			d.provider.Inbound(efatest.Mail{Subject: "My order", Text: "Where is it?"})
			return d.delivered(ctx)
		}},
		{"again", "the provider delivers it once more, as providers do", http.StatusNoContent, func() (int, error) {
			d.provider.Redeliver(d.provider.Events()[0].ID)
			return d.delivered(ctx)
		}},
		{"forged", "somebody else signs with a secret of their own", refused, func() (int, error) {
			return d.post(ctx, verify.RawSecret("a guess, but a long one"), now, body, body)
		}},
		{"stale", "a delivery that was recorded an hour ago", refused, func() (int, error) {
			return d.post(ctx, genuine, now.Add(-time.Hour), body, body)
		}},
		{"tampered", "a genuine signature with another body", refused, func() (int, error) {
			return d.post(ctx, genuine, now, body, bytes.Replace(body, []byte("msg_9"), []byte("msg_8"), 1))
		}},
	} {
		status, err := step.deliver()
		if err != nil {
			return fmt.Errorf("%s: %w", step.name, err)
		}
		_, _ = fmt.Fprintf(d.out, "  %-9s %d  %s%s\n", step.name, status, step.story, d.reason())
		if status != step.want {
			return fmt.Errorf("%s: answered %d, want %d", step.name, status, step.want)
		}
	}
	return d.tickets(ctx)
}

// tickets looks at the service's own routes, which nobody has touched.
func (d *demo) tickets(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url+"/tickets", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := d.provider.Client().Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var tickets []ticket
	if err := json.NewDecoder(resp.Body).Decode(&tickets); err != nil {
		return err
	}
	_, _ = fmt.Fprintf(d.out, "\n5 deliveries, %d ticket. A sender learns the status alone; the reason is in the service's log.\n", len(tickets))
	if len(tickets) != 1 {
		return fmt.Errorf("%d tickets, want 1", len(tickets))
	}
	return nil
}

// delivered makes the provider's next attempt and returns its answer.
func (d *demo) delivered(ctx context.Context) (int, error) {
	d.provider.Drain(ctx)
	all := d.provider.Deliveries()
	attempts := all[len(all)-1].Attempts
	if len(attempts) == 0 {
		return 0, errors.New("the provider made no attempt")
	}
	return attempts[len(attempts)-1].Status, nil
}

// post signs one body and sends another.
func (d *demo) post(ctx context.Context, secret verify.Secret, at time.Time, signed, sent []byte) (int, error) {
	header, err := verify.Sign(secret, "evt_9", at, signed)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, d.url+"/hooks/efa", bytes.NewReader(sent))
	if err != nil {
		return 0, err
	}
	req.Header = header
	resp, err := d.provider.Client().Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// reason is what the service has logged since it was asked last.
func (d *demo) reason() string {
	line := d.log.String()
	d.log.Reset()
	if _, text, ok := strings.Cut(line, " error="); ok {
		return "\n                 log: " + strings.Trim(strings.TrimSpace(text), `"`)
	}
	return ""
}
