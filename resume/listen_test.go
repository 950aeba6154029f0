package resume_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
	"github.com/replywake/replywake/internal/testdb"
	"github.com/replywake/replywake/resume"
)

// cut ends the connections that listen.
func (r *rig) cut() {
	r.t.Helper()
	_, err := r.pool.Exec(r.t.Context(), "select pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_stat_activity "+
		"where datname = current_database() and query ilike 'listen %'")
	require.NoError(r.t, err)
}

// deaf is a database in which every NOTIFY is lost; hints counts them.
func deaf(t *testing.T, url string) string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(context.Background())) }()
	_, err = conn.Exec(t.Context(), `create schema deaf; create table deaf.hints (owner text);
		create function deaf.pg_notify(text, text) returns void language sql as 'insert into deaf.hints values ($2)'`)
	require.NoError(t, err)
	and := "?"
	if strings.Contains(url, "?") {
		and = "&"
	}
	return url + and + "search_path=deaf,pg_catalog"
}

// Every hint is lost, and the connection that listens is cut again and again:
// looking at the tables finds all work, and the engine listens again.
func TestWithoutHintsThePollFindsAllWork(t *testing.T) {
	t.Parallel()
	r := alone(t, deaf(t, testdb.Database(t)), acks(1), resume.Config{Poll: 50 * time.Millisecond}, 8)
	r.runEngine(r.another()) // what this process does wakes it by hints alone
	for i, to := range []string{"a@example.com", "b@example.com", "c@example.com"} {
		r.until("it listens", func() bool { return r.listeners() == 1 })
		r.cut()
		r.start(resume.Start{ID: to, Counterparty: to, First: question(to)})
		r.until("sent", func() bool { return len(r.srv.Sends()) == 2*i+1 })
		r.srv.Inbound(efatest.Mail{From: to, ReplyTo: r.srv.Sends()[2*i].MessageID, Text: "1"})
		r.until("done", func() bool { return r.status(to) == resume.StatusDone })
		require.Len(t, r.srv.Sends(), 2*i+2)
	}
	r.until("it listens", func() bool { return r.listeners() == 1 })
	require.Positive(t, r.count("select count(*) from deaf.hints"), "there were hints to lose")
}

// What happens while nobody listens is looked for once somebody does again: with
// an hour between two looks nothing else would find it.
func TestListeningAgainLooksForWhatWasMissed(t *testing.T) {
	t.Parallel()
	r := alone(t, testdb.Database(t), nil, resume.Config{Poll: time.Hour}, 8)
	worked := make(chan string, 10)
	r.do(func(_ context.Context, run *resume.Run) (resume.Next, error) {
		worked <- run.ID
		return resume.Done(), nil
	})
	r.runEngine(r.another())
	r.until("it listens", func() bool { return r.listeners() == 1 })
	r.cut()
	r.until("it does not listen", func() bool { return r.listeners() == 0 })
	r.start(resume.Start{ID: "w1", Counterparty: supplier})
	select {
	case <-worked:
	case <-time.After(30 * time.Second):
		t.Fatal("it was not looked for")
	}
	require.Equal(t, 1, r.listeners())
}
