package client_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
)

func TestNormalizeAddress(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ in, want string }{
		"as it is":                  {"ann@example.com", "ann@example.com"},
		"upper case":                {"Ann.B@Example.COM", "ann.b@example.com"},
		"display name":              {"Ann B <Ann@Example.com>", "ann@example.com"},
		"quoted display name":       {`"B, Ann" <ann@example.com>`, "ann@example.com"},
		"encoded display name":      {"=?utf-8?q?=C3=84nn?= <ann@example.com>", "ann@example.com"},
		"unknown charset":           {"=?x-nobody-knows?b?w4Q=?= <ann@example.com>", "ann@example.com"},
		"angle brackets":            {"<ann@example.com>", "ann@example.com"},
		"comment":                   {"ann@example.com (Ann)", "ann@example.com"},
		"white space":               {"  ann@example.com ", "ann@example.com"},
		"plus stays":                {"ann+tag@gmail.com", "ann+tag@gmail.com"},
		"dots stay":                 {"a.n.n@gmail.com", "a.n.n@gmail.com"},
		"final dot":                 {"ann@example.com\u3002", "ann@example.com"},
		"quotes without need":       {`"ann"@example.com`, "ann@example.com"},
		"quotes with need":          {`"Ann B"@example.com`, `"ann b"@example.com`},
		"at sign in quotes":         {`"a@b"@example.com`, `"a@b"@example.com`},
		"umlaut":                    {"ann@Bücher.example", "ann@xn--bcher-kva.example"},
		"A-label":                   {"ann@XN--BCHER-KVA.example", "ann@xn--bcher-kva.example"},
		"sharp s is kept apart":     {"ann@straße.example", "ann@xn--strae-oqa.example"},
		"two labels":                {"ann@例え.テスト", "ann@xn--r8jz45g.xn--zckzah"},
		"ideographic full stop":     {"ann@例え\u3002テスト", "ann@xn--r8jz45g.xn--zckzah"},
		"local part beyond ASCII":   {"ÄNN@example.com", "Änn@example.com"},
		"upper case beyond ASCII":   {"ann@ÄRZTE.example", "ann@xn--rzte-koa.example"},
		"kelvin sign in the domain": {"ann@\u212aelvin.example", "ann@kelvin.example"},
		"kelvin sign in local part": {"\u212aelvin@example.com", "\u212aelvin@example.com"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := client.NormalizeAddress(tc.in)
			require.NoError(t, err)
			assert.Equal(t, tc.want, got)
			again, err := client.NormalizeAddress(got)
			require.NoError(t, err)
			assert.Equal(t, got, again)
		})
	}
}

func TestNormalizeAddressRefusesAndQuotesNothing(t *testing.T) {
	t.Parallel()
	for name, in := range map[string]string{
		"empty":          "",
		"no at":          "secretword",
		"no local part":  "@secretword.example",
		"no domain":      "secretword@",
		"two addresses":  "secretword@example.com, b@example.com",
		"empty label":    "secretword@example..com",
		"line break":     "secretword@example.com\r\nBcc: x@example.com",
		"long label":     "secretword@" + strings.Repeat("a", 64) + ".com",
		"long wide one":  "secretword@" + strings.Repeat("ä", 64) + ".com",
		"long local":     strings.Repeat("secretword", 40) + "@example.com",
		"too long":       strings.Repeat("secretword ", 400) + "<a@example.com>",
		"not UTF-8":      "secretword\xff@example.com",
		"zero byte":      "secretword\x00@example.com",
		"only stops":     "secretword@\u3002\u3002",
		"unclosed angle": "<secretword@example.com",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := client.NormalizeAddress(in)
			require.ErrorIs(t, err, client.ErrAddress)
			assert.Empty(t, got)
			assert.NotContains(t, err.Error(), "secretword")
		})
	}
}

func FuzzNormalizeAddress(f *testing.F) {
	f.Add("Ann <ann@example.com>")
	f.Add(`"a b"@bücher.example`)
	f.Add("a@[127.0.0.1]")
	f.Fuzz(func(t *testing.T, in string) {
		got, err := client.NormalizeAddress(in)
		if err != nil {
			require.ErrorIs(t, err, client.ErrAddress)
			return
		}
		again, err := client.NormalizeAddress(got)
		require.NoError(t, err)
		require.Equal(t, got, again)
		require.NotContains(t, got, "\n")
		require.NotContains(t, got, "\x00")
		require.LessOrEqual(t, len(got), 320)
	})
}
