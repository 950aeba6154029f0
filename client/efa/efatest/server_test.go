package efatest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client/efa/efatest"
)

// recorder is a TB that remembers.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.errors = append(r.errors, fmt.Sprintf(format, args...))
}

func TestCheckFailsTheTestForEachViolation(t *testing.T) {
	t.Parallel()
	srv, api := setup(t, efatest.Config{})
	rec := &recorder{TB: t}
	srv.Check(rec)
	require.Empty(t, rec.errors)
	api.events("limit=1000")
	api.get("/unknown")
	srv.Check(rec)
	require.Len(t, rec.errors, 2)
}

func TestConfigReportsEveryFault(t *testing.T) {
	t.Parallel()
	_, err := efatest.Start(efatest.Config{
		Environment: "staging", Speed: -1, InMemory: true,
		Keys: []efatest.Key{{Token: "a"}, {Token: "a", Inboxes: []string{"ibx_none"}}},
	})
	require.Equal(t, 4, len(strings.Split(err.Error(), "\n")), "%v", err)
	_, err = efatest.Start(efatest.Config{Addr: "256.0.0.1:0"})
	require.Error(t, err)
}

func TestTheSeedDecidesEveryName(t *testing.T) {
	t.Parallel()
	names := func(seed uint64) []string {
		srv, _ := setup(t, efatest.Config{Seed: seed})
		in := srv.Inbound(efatest.Mail{})
		return []string{srv.Key(), srv.Secret(), in.MessageID, in.ThreadID, in.EventID}
	}
	require.Equal(t, names(1), names(1))
	require.NotEqual(t, names(1), names(2))
}

func TestRealTimeDeliversByItself(t *testing.T) {
	t.Parallel()
	srv := efatest.NewServer(t, efatest.Config{Speed: 10_000})
	got := make(chan string, 10)
	fails := 2
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if fails > 0 { // one event: its attempts follow each other
			fails--
			w.WriteHeader(500)
			return
		}
		got <- r.Header.Get("webhook-id")
	}))
	defer web.Close()
	srv.Webhook(web.URL)
	in := srv.Inbound(efatest.Mail{})
	require.Equal(t, in.EventID, <-got)
}

func TestAdvanceInRealTimeRunsDueRetries(t *testing.T) {
	t.Parallel()
	srv := efatest.NewServer(t, efatest.Config{InMemory: true})
	attempts := make(chan int, 8)
	n := 0
	srv.WebhookHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		attempts <- n
		w.WriteHeader(503)
	}))
	srv.Inbound(efatest.Mail{})
	require.Equal(t, 1, <-attempts)
	require.Eventually(t, func() bool {
		d := srv.Deliveries()[0]
		return d.State == efatest.StatePending && len(d.Attempts) == 1
	}, 5*time.Second, time.Millisecond)
	srv.Advance(time.Minute)
	require.Equal(t, 2, <-attempts)
}

func TestInsideSynctest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, err := efatest.Start(efatest.Config{InMemory: true})
		require.NoError(t, err)
		defer srv.Close()
		start := time.Now()
		var at []time.Duration
		srv.WebhookHandler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			at = append(at, time.Since(start))
			w.WriteHeader(503)
		}))
		api := api{t, srv, srv.Key()}
		srv.Inbound(efatest.Mail{Late: time.Minute})
		require.Empty(t, api.events("").data())
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		require.Len(t, api.events("").data(), 1)
		require.Equal(t, []time.Duration{0, 10 * time.Second, 70 * time.Second}, at)
	})
}

func TestASlowReceiverMeetsTheTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		srv, err := efatest.Start(efatest.Config{InMemory: true})
		require.NoError(t, err)
		defer srv.Close()
		var took time.Duration
		srv.WebhookHandler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			began := time.Now()
			<-r.Context().Done()
			took = time.Since(began)
		}))
		srv.Inbound(efatest.Mail{})
		time.Sleep(30 * time.Second)
		synctest.Wait()
		require.Equal(t, 25*time.Second, took)
		require.Equal(t, 0, srv.Deliveries()[0].Attempts[0].Status)
	})
}

func TestCloseLeavesNothingBehind(t *testing.T) { //nolint:paralleltest // it counts goroutines
	before := runtime.NumGoroutine()
	web := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // a server notices a lost client only after the body
		<-r.Context().Done()
	}))
	for i := range 20 {
		srv, err := efatest.Start(efatest.Config{InMemory: i%2 == 0})
		require.NoError(t, err)
		srv.Webhook(web.URL)
		srv.Inbound(efatest.Mail{})
		srv.Fault(efatest.Fault{Op: efatest.OpBody, Delay: time.Hour})
		api := api{t, srv, srv.Key()}
		arrived := make(chan struct{})
		go func() { close(arrived); _, _ = api.do("GET", "/inboxes/ibx_main/messages/m/body", "") }()
		<-arrived
		api.events("")
		srv.Close()
		srv.Close()
		_, err = api.do("GET", "/events", "")
		require.Error(t, err)
	}
	web.Close()
	require.Eventually(t, func() bool { runtime.Gosched(); return runtime.NumGoroutine() <= before+1 }, 5*time.Second, 10*time.Millisecond)
}

func TestAnAnswerCanBeReadWhileItIsWritten(t *testing.T) {
	t.Parallel()
	next := make(chan struct{})
	client := &http.Client{Transport: efatest.InMemory(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, r.Host, r.RequestURI)
		<-next
		panic(http.ErrAbortHandler)
	}))}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://host.invalid/a?b=c", nil)
	require.NoError(t, err)
	resp, err := client.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	b := make([]byte, 100)
	n, err := resp.Body.Read(b)
	require.NoError(t, err)
	require.Equal(t, "host.invalid/a?b=c", string(b[:n]))
	close(next)
	_, err = resp.Body.Read(b)
	require.ErrorContains(t, err, "unexpected EOF")
}

func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		srv, err := efatest.Start(efatest.Config{InMemory: true})
		if err != nil {
			b.Fatal(err)
		}
		srv.Close()
	}
}
