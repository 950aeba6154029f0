package verify_test

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/replywake/replywake/verify"
)

// Verify takes headers and body from anywhere: a queue, a function gateway, a
// file. The error says to your log what the sender is not told.
func ExampleVerifier_Verify() {
	v, err := verify.New(verify.Config{
		Secrets: []verify.Secret{verify.Base64Secret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")},
		Now:     func() time.Time { return time.Unix(1614265330, 0) },
	})
	if err != nil {
		panic(err)
	}
	header := http.Header{
		"svix-id":        {"msg_p5jXN8AQM9LWM0D4loKWxJek"},
		"svix-timestamp": {"1614265330"},
		"svix-signature": {"v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
	}

	d, err := v.Verify(header, []byte(`{"test": 2432232314}`))
	fmt.Println(d.ID, d.Timestamp.Format(time.RFC3339), err)

	_, err = v.Verify(header, []byte(`{"test":2432232314}`)) // parsed and written again
	fmt.Println(v.Status(err), err)

	header["svix-timestamp"] = []string{"1614260000"}
	_, err = v.Verify(header, []byte(`{"test": 2432232314}`))
	if te, ok := errors.AsType[*verify.TimestampError](err); ok {
		fmt.Println(v.Status(err), te.Skew, "seconds old")
	}
	// Output:
	// msg_p5jXN8AQM9LWM0D4loKWxJek 2021-02-25T15:02:10Z <nil>
	// 400 verify: no signature matches: wrong secret, or a body that is not the bytes as sent
	// 400 5330 seconds old
}
