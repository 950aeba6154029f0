package events

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/replywake/replywake/client"
)

// Trouble says who can mend what stopped a sweep.
type Trouble string

// The kinds of trouble.
const (
	TroubleNone       Trouble = ""
	TroubleStore      Trouble = "store"      // the Receiver: its database, or the program's handler
	TroubleService    Trouble = "service"    // the provider or the network
	TroubleQuota      Trouble = "quota"      // a limit of the provider
	TroubleCredential Trouble = "credential" // the key is refused
	TroubleRequest    Trouble = "request"    // what is asked for, such as the cursor or the address
)

// failure is an error of one side of a sweep. The side is kept because a
// Receiver's error may wrap a client.Error that has nothing to do with ours.
type failure struct {
	op    string
	store bool
	err   error
}

func (f *failure) Error() string   { return "events: " + f.op + ": " + f.err.Error() }
func (f *failure) Unwrap() []error { return []error{Err, f.err} }

func storeError(op string, err error) error  { return &failure{op, true, err} }
func sourceError(op string, err error) error { return &failure{op, false, err} }

func pageError(after Cursor, err error) error {
	return sourceError(fmt.Sprintf("page after %s", after), err)
}

// troubleOf classes an error of Sweep or Attach.
func troubleOf(err error) Trouble {
	f, ok := errors.AsType[*failure](err)
	switch {
	case err == nil, errors.Is(err, ErrLeaseHeld):
		return TroubleNone
	case errors.Is(err, ErrCursorInvalid):
		return TroubleRequest
	case ok && f.store:
		return TroubleStore
	case errors.Is(err, ErrCursorExpired):
		return TroubleService // the next sweep restarts
	}
	return Trouble(client.ClassOf(err).String())
}

// isFinal says that only a person can clear the error, so that asking again is
// of no use: the stream's name is another project's, or the provider does not
// take the stored cursor.
func isFinal(err error) bool {
	if errors.Is(err, ErrForeignStream) || errors.Is(err, ErrCursorInvalid) {
		return true
	}
	if f, ok := errors.AsType[*failure](err); !ok || f.store {
		return false
	}
	e, ok := errors.AsType[*client.Error](err)
	return ok && e.Status == http.StatusBadRequest && e.Class == client.ClassRequest
}
