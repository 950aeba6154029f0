package verify

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// Sign returns the three webhook-* headers of a delivery, for tests and
// simulators:
//
//	h, err := verify.Sign(secret, "msg_1", time.Now(), body)
//	maps.Copy(request.Header, h)
//
// It refuses what no Verifier would accept: a bad secret ([ErrSecret]), an ID or
// a time that the headers cannot carry. The secret's Until is not looked at.
func Sign(secret Secret, id string, timestamp time.Time, body []byte) (http.Header, error) {
	raw, err := secret.key()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSecret, err)
	}
	seconds := strconv.FormatInt(timestamp.Unix(), 10)
	if _, ok := parseTimestamp(seconds); !ok {
		return nil, because(ErrMalformedTimestamp, "cannot sign a time of less than 1 or more than 12 digits of Unix seconds")
	}
	if !validID(id) {
		return nil, because(ErrMalformedID, "cannot sign it")
	}
	sum := newKey(raw, "", time.Time{}).sign(id, seconds, body)
	h := make(http.Header, partCount)
	h.Set(headerNames[webhookID], id)
	h.Set(headerNames[webhookTimestamp], seconds)
	h.Set(headerNames[webhookSignature], "v1,"+base64.StdEncoding.EncodeToString(sum[:]))
	return h, nil
}
