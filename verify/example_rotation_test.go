package verify_test

import (
	"fmt"
	"time"

	"github.com/replywake/replywake/verify"
)

// A rotation while serving: take the next secret beside the current one before
// the sender changes over, give the old one an end, and let Delivery say which
// of them is still in use.
func Example_rotation() {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	clock := func() time.Time { return now }
	current := verify.RawSecret("0123456789abcdef0123456789abcdef").Version("june")
	next := verify.RawSecret("fedcba9876543210fedcba9876543210").Version("november")

	v, err := verify.New(verify.Config{Secrets: []verify.Secret{current}, Now: clock})
	if err != nil {
		panic(err)
	}
	deliver := func(sender verify.Secret) {
		body := []byte(`{}`)
		h, err := verify.Sign(sender, "evt_1", now, body)
		if err != nil {
			panic(err)
		}
		d, err := v.Verify(h, body)
		fmt.Printf("%q %v\n", d.SecretVersion, err)
	}

	if err := v.SetSecrets(next, current.Until(now.Add(24*time.Hour))); err != nil {
		panic(err)
	}
	deliver(current)
	deliver(next)
	now = now.Add(25 * time.Hour)
	deliver(current)
	deliver(next)
	// Output:
	// "june" <nil>
	// "november" <nil>
	// "" verify: no signature matches: wrong secret, or a body that is not the bytes as sent
	// "november" <nil>
}
