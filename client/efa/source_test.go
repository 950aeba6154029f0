package efa_test

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/efa"
	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/verify"
)

const documentedPage = `{
"data": [
{
"id": "evt_1",
"type": "message.delivery_updated",
"sequence": 907,
"occurred_at": "2026-09-23T14:40:11.903Z",
"data": { "message_id": "msg_1", "inbox_id": "ibx_1" },
"environment": "live",
"api_version": "2026-09-19"
}
],
"next_cursor": "907",
"has_more": true
}`

func TestPage(t *testing.T) {
	t.Parallel()
	c, p := answering(t, 200, documentedPage)
	page, err := c.Source().Page(t.Context(), 902)
	require.NoError(t, err)
	assert.Equal(t, []asked{{method: "GET", path: "/v1/projects/prj_1/events", query: "cursor=902&limit=100"}}, p.requests())
	assert.True(t, page.More)
	assert.WithinDuration(t, time.Now(), page.Date, time.Minute)
	require.Len(t, page.Events, 1)
	ev := page.Events[0]
	assert.Contains(t, string(ev.Data.Bytes()), `"sequence": 907`)
	ev.Data = client.Raw{}
	assert.Equal(t, events.Event{
		ID: "evt_1", Kind: events.KindDelivery, Type: "message.delivery_updated",
		Inbox: "ibx_1", Message: "msg_1", Sequence: 907,
		OccurredAt: time.Date(2026, 9, 23, 14, 40, 11, 903e6, time.UTC),
	}, ev)
}

func TestPageFromTheBeginningSendsNoCursor(t *testing.T) {
	t.Parallel()
	c, p := answering(t, 200, `{"data":[],"next_cursor":null,"has_more":false}`)
	page, err := c.Source().Page(t.Context(), 0)
	require.NoError(t, err)
	assert.Empty(t, page.Events)
	assert.False(t, page.More)
	assert.Equal(t, "limit=100", p.requests()[0].query)

	_, err = c.Source().Page(t.Context(), -1)
	require.ErrorIs(t, err, events.ErrCursorInvalid)
	assert.Len(t, p.requests(), 1, "it asked for an invalid cursor")
}

func TestPageCursorErrors(t *testing.T) {
	t.Parallel()
	c, p := answering(t, 410, `{"error":{"code":"cursor_expired","message":"xyzzy","retryable":false}}`)
	_, err := c.Source().Page(t.Context(), 5)
	require.ErrorIs(t, err, events.ErrCursorExpired)
	assert.Equal(t, client.ClassRequest, problem(t, err).Class)
	assert.Len(t, p.requests(), 1)

	c, _ = answering(t, 400, `{"error":{"code":"invalid_cursor"}}`)
	_, err = c.Source().Page(t.Context(), 5)
	require.ErrorIs(t, err, events.ErrCursorInvalid)
	problem(t, err)

	c, _ = answering(t, 410, `<html>gone</html>`)
	_, err = c.Source().Page(t.Context(), 5)
	require.NotErrorIs(t, err, events.ErrCursorExpired, "a proxy's 410 is no loss of events")
	assert.Equal(t, 410, problem(t, err).Status)
}

func TestPageOfAnotherShapeIsNoEmptyPage(t *testing.T) {
	t.Parallel()
	bad := map[string]string{
		"no ID":          `{"data":[{"sequence":1,"type":"x"}],"has_more":false}`,
		"ID with spaces": `{"data":[{"id":"a b","sequence":1}],"has_more":false}`,
		"zero byte ID":   `{"data":[{"id":"a\u0000","sequence":1}],"has_more":false}`,
		"long ID":        `{"data":[{"id":"` + strings.Repeat("x", 257) + `","sequence":1}],"has_more":false}`,
		"no sequence":    `{"data":[{"id":"evt_1","type":"x"}],"has_more":false}`,
		"zero":           `{"data":[{"id":"evt_1","sequence":0}],"has_more":false}`,
		"negative":       `{"data":[{"id":"evt_1","sequence":-1}],"has_more":false}`,
		"fraction":       `{"data":[{"id":"evt_1","sequence":1.5}],"has_more":false}`,
		"exponent":       `{"data":[{"id":"evt_1","sequence":1e3}],"has_more":false}`,
		"over 64 bits":   `{"data":[{"id":"evt_1","sequence":9223372036854775808}],"has_more":false}`,
		"no has_more":    `{"data":[]}`,
		"null has_more":  `{"data":[],"has_more":null}`,
	}
	for name, body := range hostile {
		bad[name] = body
	}
	for name, body := range bad {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, _ := answering(t, 200, body)
			page, err := c.Source().Page(t.Context(), 5)
			require.ErrorIs(t, err, client.ErrBadAnswer)
			assert.Equal(t, client.ClassService, problem(t, err).Class)
			assert.Empty(t, page)
		})
	}
}

func TestPageIsTolerant(t *testing.T) {
	t.Parallel()
	c, _ := answering(t, 200, `{"data":[
		{"id":"evt_1","sequence":"41","type":"message.received","new":{"deep":[1]},"occurred_at":7,
		 "data":{"message_id":"msg_1","inbox_id":["ibx"],"thread_id":"t\n1","approval_id":12}},
		{"id":7,"sequence":9223372036854775807,"data":null},
		{"id":"evt_3","sequence":43,"type":{"a":1},"data":"text"}],"has_more":false,"new":1}`)
	page, err := c.Source().Page(t.Context(), 1)
	require.NoError(t, err)
	require.Len(t, page.Events, 3)
	first := page.Events[0]
	assert.Equal(t, events.Cursor(41), first.Sequence)
	assert.Equal(t, events.KindReceived, first.Kind)
	assert.Equal(t, "msg_1", first.Message)
	assert.Equal(t, "12", first.Approval)
	assert.Empty(t, first.Inbox)
	assert.Empty(t, first.Thread, "a line break is no part of an ID")
	assert.Zero(t, first.OccurredAt)
	assert.Equal(t, "7", page.Events[1].ID)
	assert.Equal(t, events.Cursor(math.MaxInt64), page.Events[1].Sequence)
	assert.Equal(t, events.KindUnknown, page.Events[1].Kind)
	assert.Equal(t, events.KindUnknown, page.Events[2].Kind)
}

func TestPageKeepsEachEventsBytes(t *testing.T) {
	t.Parallel()
	rows := []string{
		`{"id":"evt_1","sequence":1,"type":"message.received","data":{"message_id":"msg_1","message_id":"msg_2"}}`,
		"{ \"\\u0069d\" : \"evt_2\",\n\t\"sequence\": \"2\" , \"note\": \"}],{[\\\\\" , \"data\" :{ } }",
		`{"id":"evt_\u0033","sequence":3,"data":null,"id":"evt_3"}`,
	}
	c, _ := answering(t, 200, "{\"has_more\" : false,\r\n\"data\" : [ "+strings.Join(rows, " ,\n")+" ] }\n")
	page, err := c.Source().Page(t.Context(), 1)
	require.NoError(t, err)
	require.Len(t, page.Events, len(rows))
	for i, ev := range page.Events {
		assert.Equal(t, "evt_"+strconv.Itoa(i+1), ev.ID)
		assert.Equal(t, rows[i], string(ev.Data.Bytes()))
	}
	assert.Equal(t, "msg_2", page.Events[0].Message, "of equal names the last counts")
}

// journal answers like the documented events endpoint.
type journal struct {
	sequences []int64 // what the key sees, rising
	oldest    int64   // of the project; 0 for "nothing was ever removed"
	arrive    map[int]int64
	broken    bool
}

func (j *journal) answer(r *http.Request, n int) (int, string) {
	if seq, ok := j.arrive[n]; ok {
		j.sequences = append(j.sequences, seq)
	}
	cursor, _ := strconv.ParseInt(r.URL.Query().Get("cursor"), 10, 64)
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	if r.URL.Query().Has("cursor") && cursor < j.oldest-1 {
		return 410, `{"error":{"code":"cursor_expired","retryable":false}}`
	}
	if j.broken {
		cursor = 0
	}
	from, _ := slices.BinarySearch(j.sequences, cursor+1)
	rows := j.sequences[from:]
	more := len(rows) > limit
	texts := []string{}
	for _, seq := range rows[:min(limit, len(rows))] {
		texts = append(texts, fmt.Sprintf(`{"id":"evt_%d","type":"message.received","sequence":%d,"data":{}}`, seq, seq))
	}
	return 200, fmt.Sprintf(`{"data":[%s],"has_more":%t}`, strings.Join(texts, ","), more)
}

func TestHead(t *testing.T) {
	t.Parallel()
	dense := make([]int64, 5000)
	for i := range dense {
		dense[i] = int64(i + 1)
	}
	for name, tc := range map[string]struct {
		journal journal
		want    events.Cursor
		within  int
	}{
		"empty":              {journal{}, 0, 12},
		"one":                {journal{sequences: []int64{1}}, 1, 12},
		"dense":              {journal{sequences: dense}, 5000, 30},
		"sparse":             {journal{sequences: []int64{907, 911, 934}}, 934, 24},
		"far apart":          {journal{sequences: []int64{1, 1 << 40}}, 1 << 40, 64},
		"the largest":        {journal{sequences: []int64{1, math.MaxInt64}}, math.MaxInt64, 64},
		"near the largest":   {journal{sequences: []int64{3, math.MaxInt64 - 1}}, math.MaxInt64 - 1, 64},
		"at the split":       {journal{sequences: []int64{1 << 57, 1<<57 + 1}}, 1<<57 + 1, 64},
		"old ones removed":   {journal{sequences: []int64{4000, 4001, 5000}, oldest: 4000}, 5000, 64},
		"removed, sees one":  {journal{sequences: []int64{5000}, oldest: 4000}, 5000, 64},
		"removed, sees none": {journal{oldest: 100}, 99, 64},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, p := answeringBy(t, tc.journal.answer)
			head, err := c.Source().Head(t.Context())
			require.NoError(t, err)
			assert.Equal(t, tc.want, head)
			assert.LessOrEqual(t, len(p.requests()), tc.within)
			for _, r := range p.requests() {
				assert.Contains(t, r.query, "limit=1")
				assert.NotContains(t, r.query, "limit=100")
			}
		})
	}
}

func TestHeadOfAnyProject(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		width := rapid.IntRange(1, 63).Draw(t, "bits")
		top := int64(math.MaxInt64) >> (63 - width)
		set := rapid.SliceOfN(rapid.Int64Range(1, top), 0, 20).Draw(t, "sequences")
		slices.Sort(set)
		set = slices.Compact(set)
		var want int64
		if len(set) > 0 {
			want = set[len(set)-1]
		}
		j := journal{sequences: set, arrive: map[int]int64{}}
		late := want
		for range rapid.IntRange(0, 3).Draw(t, "arrivals") {
			at := rapid.IntRange(1, 40).Draw(t, "at")
			if late < math.MaxInt64-2 && j.arrive[at] == 0 && ascending(j.arrive, at) {
				late += rapid.Int64Range(1, min(1000, math.MaxInt64-1-late)).Draw(t, "step")
				j.arrive[at] = late
			}
		}
		c, requests := inMemory(t, j.answer)
		head, err := c.Source().Head(t.Context())
		require.NoError(t, err)
		require.GreaterOrEqual(t, int64(head), want, "what was there when it was called lies at or below the head")
		require.LessOrEqual(t, int64(head), late)
		require.LessOrEqual(t, *requests, 64)
	})
}

func ascending(arrive map[int]int64, at int) bool {
	for other := range arrive {
		if other > at {
			return false
		}
	}
	return true
}

// inMemory is a client without a network: rapid makes thousands of requests.
func inMemory(t require.TestingT, answer func(*http.Request, int) (int, string)) (*efa.Client, *int) {
	requests := new(int)
	c, err := efa.New(efa.Config{Project: "prj_1", Key: testKey, HTTPClient: &http.Client{
		Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			status, body := answer(r, *requests)
			*requests++
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: readCloser(body)}, nil
		}),
	}})
	require.NoError(t, err)
	return c, requests
}

func TestHeadOfASourceThatIgnoresTheCursor(t *testing.T) {
	t.Parallel()
	j := journal{sequences: []int64{5, 6}, broken: true}
	c, p := answeringBy(t, j.answer)
	_, err := c.Source().Head(t.Context())
	require.ErrorIs(t, err, events.ErrNoProgress)
	require.ErrorIs(t, err, client.ErrBadAnswer)
	problem(t, err)
	assert.Len(t, p.requests(), 1)
}

// One answer that cannot be right is no head: too low a one would answer old
// mail, too high a one would never answer any.
func TestHeadBelievesNoContradiction(t *testing.T) {
	t.Parallel()
	const expired, more = `{"error":{"code":"cursor_expired"}}`, `{"data":[],"next_cursor":null,"has_more":true}`
	for name, j := range map[string]journal{
		"empty":   {},
		"some":    {sequences: []int64{3, 4, 7, 900}},
		"expired": {sequences: []int64{4000, 5000}, oldest: 4000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, requests := inMemory(t, j.answer)
			want, err := c.Source().Head(t.Context())
			require.NoError(t, err)
			for n := range *requests {
				once := func(status int, body string) func(*http.Request, int) (int, string) {
					return func(r *http.Request, i int) (int, string) {
						if i == n {
							return status, body
						}
						return j.answer(r, i)
					}
				}
				c, _ := inMemory(t, once(200, more))
				_, err := c.Source().Head(t.Context())
				require.ErrorIs(t, err, events.ErrNoProgress, "request %d", n)
				assert.Equal(t, client.ClassService, problem(t, err).Class)

				c, _ = inMemory(t, once(410, expired))
				got, err := c.Source().Head(t.Context())
				if err == nil {
					assert.Equal(t, want, got, "request %d", n)
				}
			}
		})
	}
}

func TestHeadPassesErrorsOn(t *testing.T) {
	t.Parallel()
	c, p := answering(t, 403, `{"error":{"code":"permission_denied"}}`)
	_, err := c.Source().Head(t.Context())
	assert.Equal(t, client.ClassCredential, problem(t, err).Class)
	assert.Len(t, p.requests(), 1)

	c, p = answering(t, 410, `{"error":{"code":"cursor_expired"}}`)
	_, err = c.Source().Head(t.Context())
	require.ErrorIs(t, err, events.ErrCursorExpired, "expired without an end is no head")
	assert.LessOrEqual(t, len(p.requests()), 64)
}

func TestBothDoorsGiveOneIdentity(t *testing.T) {
	t.Parallel()
	c, _ := answering(t, 200, documentedPage)
	page, err := c.Source().Page(t.Context(), 902)
	require.NoError(t, err)
	polled := page.Events[0]
	pushed, err := efa.Profile(verify.Delivery{ID: "evt_1"}, []byte(`{"id":"evt_1","type":"message.delivery_updated",
		"api_version":"2026-09-19","data":{"message_id":"msg_1","inbox_id":"ibx_1"}}`))
	require.NoError(t, err)
	assert.Equal(t, polled.ID, pushed.ID)
	polled.Sequence, polled.OccurredAt, polled.Data, pushed.Data = 0, time.Time{}, client.Raw{}, client.Raw{}
	assert.Equal(t, polled, pushed)
}
