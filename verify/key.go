package verify

import (
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	base64Prefix = "whsec_"

	// A shorter raw text can be guessed; placeholders such as "***" and
	// "changeme" end here too.
	minRawKey = 16

	// Standard Webhooks asks for 24 to 64 bytes; Svix issues up to 75.
	minBase64Key = 24
	maxBase64Key = 75

	maxVersion = 64
)

// strictBase64 refuses a last character whose unused bits are set, which would
// let one MAC be written in several ways.
var strictBase64 = base64.StdEncoding.Strict()

// compile turns secrets into keys, or reports every fault of every secret. Those
// that old has, too, keep their names.
func compile(secrets []Secret, now time.Time, old *keyring) (*keyring, error) {
	if len(secrets) == 0 {
		return nil, because(ErrSecret, "none given")
	}
	ring := &keyring{keys: make([]*key, len(secrets)), numbers: old.numbers}
	var faults []error
	for i, s := range secrets {
		k, err := s.compile()
		if err == nil {
			k.since = now
			ring.name(k, i, old)
		}
		if err == nil && ring.named(k.version) {
			err = errors.New("its version is another secret's too")
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("%w %d: %w", ErrSecret, i+1, err))
			continue
		}
		ring.keys[i] = k
	}
	if len(faults) == 0 && !ring.anyLive(now) {
		faults = append(faults, because(ErrSecret, "every one is past its Until"))
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return ring, nil
}

func (s Secret) compile() (*key, error) {
	raw, err := s.key()
	if err != nil {
		return nil, err
	}
	if s.version != "" && (!visible(s.version) || len(s.version) > maxVersion) {
		return nil, fmt.Errorf("its version is not 1 to %d visible ASCII bytes", maxVersion)
	}
	if text, _ := s.reveal(); s.version == text {
		return nil, errors.New("its version is the secret itself, which would be logged")
	}
	return newKey(raw, s.version, s.until), nil
}

// key returns a copy of the key bytes.
func (s Secret) key() ([]byte, error) {
	if s.reveal == nil {
		return nil, errors.New("empty; use RawSecret or Base64Secret")
	}
	text, enc := s.reveal()
	if err := checkWrapping(text); err != nil {
		return nil, err
	}
	if enc == encodingBase64 {
		return decodeKey(text)
	}
	if len(text) < minRawKey {
		return nil, fmt.Errorf("shorter than %d bytes", minRawKey)
	}
	return []byte(text), nil
}

// checkWrapping refuses what a secret picks up on its way from a file or an
// environment: a trailing newline in a raw key would make every delivery fail.
func checkWrapping(text string) error {
	if text == "" {
		return errors.New("empty")
	}
	if strings.TrimSpace(strings.Trim(text, "\ufeff")) != text {
		return errors.New("surrounded by white space; trim it where it is read")
	}
	if first := text[0]; len(text) > 1 && first == text[len(text)-1] && strings.IndexByte("\"'`", first) >= 0 {
		return errors.New("surrounded by quotes; remove them where it is set")
	}
	return nil
}

func decodeKey(text string) ([]byte, error) {
	encoded := strings.TrimPrefix(text, base64Prefix)
	if hint := notBase64(text, encoded); hint != "" {
		return nil, errors.New(hint)
	}
	key, err := strictBase64.DecodeString(encoded)
	if err != nil {
		// The decoder's own text would give away where in the secret it stopped.
		return nil, errors.New("not standard base64 with padding")
	}
	if n := len(key); n < minBase64Key || n > maxBase64Key {
		return nil, fmt.Errorf("decodes to %d bytes, want %d to %d", n, minBase64Key, maxBase64Key)
	}
	return key, nil
}

// notBase64 recognises the mistakes that deserve a better word than "bad base64".
func notBase64(text, encoded string) string {
	switch {
	case encoded == "":
		return "empty after its prefix"
	case strings.HasPrefix(text, "v1,"):
		return `begins with a signature version; the secret begins after "v1,"`
	case strings.HasPrefix(text, "whsk_"), strings.HasPrefix(text, "whpk_"):
		return "a key for asymmetric signatures, which are not supported"
	case hexOnly(text):
		return "hexadecimal digits alone, which base64 would decode to a wrong key without an error; use RawSecret"
	case strings.ContainsAny(encoded, "\r\n"):
		// encoding/base64 skips line breaks, strict or not.
		return "has a line break inside"
	case strings.ContainsAny(encoded, "-_"):
		return "URL-safe base64; use the standard alphabet"
	case len(encoded)%4 != 0 && !strings.Contains(encoded, "="):
		return "base64 without padding or cut short"
	}
	return ""
}

func hexOnly(s string) bool {
	return strings.Trim(s, "0123456789abcdefABCDEF") == ""
}

// visible reports whether s is one or more ASCII bytes that print, without space.
func visible(s string) bool {
	for i := range len(s) {
		if s[i]-'!' > '~'-'!' {
			return false
		}
	}
	return s != ""
}

// keyring is one set of secrets, replaced whole and never changed.
type keyring struct {
	keys    []*key
	numbers int // given so far, to secrets without a name
}

// name numbers the i-th key, if it has no name: as in old, or with its position
// in a Verifier's first ring, or with the next number. It also learns since when
// old has it under that name.
func (r *keyring) name(k *key, i int, old *keyring) {
	same := func(o *key) bool {
		return (k.version == "" && o.numbered || k.version == o.version) && k.is(o) && !r.named(o.version)
	}
	k.numbered = k.version == ""
	switch at := slices.IndexFunc(old.keys, same); {
	case at >= 0:
		k.version, k.since = old.keys[at].version, old.keys[at].since
	case !k.numbered:
	case len(old.keys) == 0:
		k.version = strconv.Itoa(i + 1)
		r.numbers = i + 1
	default:
		r.numbers++
		k.version = strconv.Itoa(r.numbers)
	}
}

func (r *keyring) named(version string) bool {
	return slices.ContainsFunc(r.keys, func(k *key) bool { return k != nil && k.version == version })
}

func (r *keyring) anyLive(now time.Time) bool {
	return slices.ContainsFunc(r.keys, func(k *key) bool { return k.live(now) })
}
