package verify_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/replywake/replywake/verify"
)

// The middleware goes around a handler that exists already. The handler reads
// the same bytes as before, and only genuine ones.
func Example_middleware() {
	secret := verify.RawSecret("0123456789abcdef0123456789abcdef") // from your environment
	v, err := verify.New(verify.Config{Secrets: []verify.Secret{secret}})
	if err != nil {
		panic(err)
	}
	hook := v.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		delivery, _ := verify.FromContext(r.Context())
		body, _ := io.ReadAll(r.Body)
		fmt.Printf("%s: %s\n", delivery.ID, body)
		w.WriteHeader(http.StatusNoContent)
	}))

	body := `{"type":"message.received"}`
	for _, sender := range []verify.Secret{secret, verify.RawSecret("a forger has to guess")} {
		r := httptest.NewRequest(http.MethodPost, "/hooks", strings.NewReader(body))
		r.Header, err = verify.Sign(sender, "evt_1", time.Now(), []byte(body))
		if err != nil {
			panic(err)
		}
		w := httptest.NewRecorder()
		hook.ServeHTTP(w, r)
		fmt.Printf("%d, %d bytes\n", w.Code, w.Body.Len())
	}
	// Output:
	// evt_1: {"type":"message.received"}
	// 204, 0 bytes
	// 400, 0 bytes
}
