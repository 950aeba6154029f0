package doctor_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/dedupe"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/events/doctor"
	"github.com/replywake/replywake/verify"
)

// A secret is rotated while three webhooks are under way. The provider cancels
// them, the cursor brings their events, and the report counts both.
func ExampleDoctor_Report() {
	ctx := context.Background()
	server, err := efatest.Start(efatest.Config{InMemory: true, Manual: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	parts, remove := exampleProgram(server)
	defer remove()

	d, err := doctor.New(parts)
	if err != nil {
		fmt.Println(err)
		return
	}
	webhook := server.WebhookHandler(parts.Handler)
	for range 3 {
		server.Inbound(efatest.Mail{})
	}
	server.Rotate(webhook.ID)
	if _, err := parts.Sweeper.Sweep(ctx); err != nil {
		fmt.Println(err)
		return
	}

	report := d.Report(ctx)
	for _, finding := range report.Findings {
		if finding.Level != doctor.OK {
			fmt.Println(finding)
		}
	}
	fmt.Println(report.Endpoints[0].Canceled.BySweep, "of", report.Endpoints[0].Canceled.Total, "recovered")
	// Output:
	// note     deliveries_canceled: A rotation, or a switch, cancelled 3 deliveries to whk_0001107e20: the cursor recovered 3.
	// 3 of 3 recovered
}

// exampleProgram has both doors and a SQLite file.
func exampleProgram(server *efatest.Server) (parts doctor.Config, remove func()) {
	dir, err := os.MkdirTemp("", "doctor")
	must(err)
	db, err := sql.Open("sqlite", filepath.Join(dir, "example.db"))
	must(err)
	provider, err := efa.New(efa.Config{
		Project: server.Project(), Key: server.Key(), BaseURL: server.URL(), HTTPClient: server.Client(),
	})
	must(err)
	inbox, err := dedupe.NewSQLite(db, dedupe.Config{Stream: provider.Stream()},
		func(context.Context, *sql.Tx, []events.Event) error { return nil })
	must(err)
	verifier, err := verify.New(verify.Config{Secrets: []verify.Secret{verify.RawSecret(server.Secret())}})
	must(err)
	handler, err := events.NewHandler(verifier, efa.Profile, inbox, events.HandlerConfig{})
	must(err)
	sweeper, err := events.NewSweeper(provider.Source(), inbox, events.SweeperConfig{Start: events.FromBeginning})
	must(err)
	return doctor.Config{Inbox: inbox, Handler: handler, Sweeper: sweeper, Provider: provider}, func() {
		_ = db.Close()
		_ = os.RemoveAll(dir)
	}
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
