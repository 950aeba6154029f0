package events_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/events"
	"github.com/replywake/replywake/verify"
)

// signedBy takes one delivery that a secret signed.
func signedBy(t *testing.T, h *events.Handler, s verify.Secret, id string) int {
	t.Helper()
	body := fmt.Sprintf(`{"id":%q,"type":"t"}`, id)
	header, err := verify.Sign(s, id, time.Now(), []byte(body))
	require.NoError(t, err)
	req := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	req.Header = header
	rec := httptest.NewRecorder()
	h.ServeHTTP(rec, req)
	return rec.Code
}

func numbered(n int) verify.Secret {
	return verify.RawSecret(fmt.Sprintf("%032d", n)).Version(fmt.Sprintf("v%d", n))
}

func TestHandlerCountsWhichSecretVerified(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		end := began.Add(24 * time.Hour)
		current, previous := numbered(2), numbered(1).Until(end)
		v, err := verify.New(verify.Config{Secrets: []verify.Secret{current, previous}})
		require.NoError(t, err)
		h, err := events.NewHandler(v, jsonProfile, newMemory(), events.HandlerConfig{})
		require.NoError(t, err)
		require.Equal(t, []events.SecretUse{{Version: "v2", Since: began}, {Version: "v1", Since: began, Until: end}}, h.Secrets())

		require.Equal(t, 204, signedBy(t, h, previous, "evt_1"))
		first := time.Now()
		time.Sleep(time.Hour)
		require.Equal(t, 204, signedBy(t, h, current, "evt_2"))
		require.Equal(t, 204, signedBy(t, h, current, "evt_2"), "a duplicate is verified too")
		require.Equal(t, 400, signedBy(t, h, numbered(3), "evt_3"), "what does not verify counts for none")
		require.Equal(t, []events.SecretUse{
			{Version: "v2", Since: began, Verified: 2, Last: time.Now()},
			{Version: "v1", Since: began, Until: end, Verified: 1, Last: first},
		}, h.Secrets())

		require.NoError(t, v.SetSecrets(current))
		require.Equal(t, events.SecretUse{Version: "v1", Gone: true, Verified: 1, Last: first}, h.Secrets()[1])
	})
}

func TestHandlerCountsNotWhatAnotherSecretVerified(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v, err := verify.New(verify.Config{Secrets: []verify.Secret{numbered(1).Version("current")}})
		require.NoError(t, err)
		h, err := events.NewHandler(v, jsonProfile, newMemory(), events.HandlerConfig{})
		require.NoError(t, err)
		require.Equal(t, 204, signedBy(t, h, numbered(1), "evt_1"))
		time.Sleep(time.Hour)
		require.NoError(t, v.SetSecrets(numbered(2).Version("current"), numbered(1).Version("previous")))
		now := time.Now()
		require.Equal(t, []events.SecretUse{{Version: "current", Since: now}, {Version: "previous", Since: now}}, h.Secrets())
	})
}

func TestHandlerForgetsSecretsThatWentLongAgo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		v, err := verify.New(verify.Config{Secrets: []verify.Secret{numbered(0)}})
		require.NoError(t, err)
		h, err := events.NewHandler(v, jsonProfile, newMemory(), events.HandlerConfig{})
		require.NoError(t, err)
		for n := range 100 {
			require.NoError(t, v.SetSecrets(numbered(n)))
			require.Equal(t, 204, signedBy(t, h, numbered(n), "evt_1"))
			time.Sleep(time.Hour)
		}
		got := h.Secrets()
		require.Len(t, got, 16)
		require.Equal(t, "v99", got[0].Version)
		require.Equal(t, "v84", got[15].Version)
	})
}
