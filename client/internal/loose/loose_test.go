package loose_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/client"
	"github.com/replywake/replywake/client/internal/loose"
)

// reading is what each method finds in the field x.
type reading struct {
	Text, Scalar, ID string
	Number           int64
	Flag             string // true, false, or empty for none
	Rows             []string
	Fields           int // -1 for no object
}

var readings = map[string]struct {
	text string
	want reading
}{
	"string":             {`{"x":"a b"}`, reading{Text: "a b", Scalar: "a b", Fields: -1}},
	"ID":                 {`{"x":"evt_1"}`, reading{Text: "evt_1", Scalar: "evt_1", ID: "evt_1", Fields: -1}},
	"empty string":       {`{"x":""}`, reading{Fields: -1}},
	"no field":           {`{"y":1,"z":"a"}`, reading{Fields: -1}},
	"empty":              {`{}`, reading{Fields: -1}},
	"null":               {`{"x":null}`, reading{Fields: -1}},
	"true":               {`{"x":true}`, reading{Flag: "true", Fields: -1}},
	"false":              {`{"x":false}`, reading{Flag: "false", Fields: -1}},
	"true as a string":   {`{"x":"true"}`, reading{Text: "true", Scalar: "true", ID: "true", Fields: -1}},
	"number":             {`{"x":7}`, reading{Scalar: "7", ID: "7", Number: 7, Fields: -1}},
	"number in a string": {`{"x":"7"}`, reading{Text: "7", Scalar: "7", ID: "7", Number: 7, Fields: -1}},
	"negative":           {`{"x":-7}`, reading{Scalar: "-7", ID: "-7", Number: -7, Fields: -1}},
	"largest":            {`{"x":9223372036854775807}`, reading{Scalar: "9223372036854775807", ID: "9223372036854775807", Number: 1<<63 - 1, Fields: -1}},
	"over 64 bits":       {`{"x":9223372036854775808}`, reading{Scalar: "9223372036854775808", ID: "9223372036854775808", Fields: -1}},
	"exponent":           {`{"x":1E+400}`, reading{Scalar: "1E+400", ID: "1E+400", Fields: -1}},
	"fraction":           {`{"x":1.0}`, reading{Scalar: "1.0", ID: "1.0", Fields: -1}},
	"number at the end":  {"{\"x\":12\n}", reading{Scalar: "12", ID: "12", Number: 12, Fields: -1}},
	"long string":        {`{"x":"` + strings.Repeat("x", 257) + `"}`, reading{Text: strings.Repeat("x", 257), Scalar: strings.Repeat("x", 257), Fields: -1}},

	"last of equal names":      {`{"x":"a","x":7,"x":"b"}`, reading{Text: "b", Scalar: "b", ID: "b", Fields: -1}},
	"last is null":             {`{"x":"a","x":null}`, reading{Fields: -1}},
	"name in escapes":          {`{"\u0078":"a"}`, reading{Text: "a", Scalar: "a", ID: "a", Fields: -1}},
	"name in escapes, later":   {`{"x":"a","\u0078":"b"}`, reading{Text: "b", Scalar: "b", ID: "b", Fields: -1}},
	"name in escapes, earlier": {`{"\u0078":"a","x":"b"}`, reading{Text: "b", Scalar: "b", ID: "b", Fields: -1}},
	"name in other letters":    {`{"X":"a"}`, reading{Fields: -1}},
	"name that ends likewise":  {`{"yx":"a","\"x":"b","\\":"c"}`, reading{Fields: -1}},
	"name only within":         {`{"y":{"x":"a"},"z":["x","a"],"w":"\"x\":1"}`, reading{Fields: -1}},

	"escapes":             {`{"x":"a\n\"\\\/\u00e9\ud83d\ude00"}`, reading{Text: "a\n\"\\/é😀", Scalar: "a\n\"\\/é😀", Fields: -1}},
	"backslash at end":    {`{"x":"a\\","y":"b"}`, reading{Text: `a\`, Scalar: `a\`, ID: `a\`, Fields: -1}},
	"half a surrogate":    {`{"x":"\ud83d"}`, reading{Text: "\ufffd", Scalar: "\ufffd", Fields: -1}},
	"zero byte":           {`{"x":"a\u0000"}`, reading{Text: "a\x00", Scalar: "a\x00", Fields: -1}},
	"UTF-8":               {`{"x":"日本語"}`, reading{Text: "日本語", Scalar: "日本語", Fields: -1}},
	"not UTF-8":           {"{\"x\":\"a\xff\xe6\x97\"}", reading{Text: "a\ufffd\ufffd\ufffd", Scalar: "a\ufffd\ufffd\ufffd", Fields: -1}},
	"brackets in strings": {`{"y":"}]{[,:","x":["]","}"]}`, reading{Rows: []string{`"]"`, `"}"`}, Fields: -1}},

	"empty array":    {`{"x":[]}`, reading{Rows: []string{}, Fields: -1}},
	"array of kinds": {`{"x":[1,"a",null,true,[2,[3]],{"y":[4]}]}`, reading{Rows: []string{`1`, `"a"`, `null`, `true`, `[2,[3]]`, `{"y":[4]}`}, Fields: -1}},
	"empty object":   {`{"x":{}}`, reading{}},
	"object":         {`{"x":{"y":{"z":[{}]},"w":"}","y":1}}`, reading{Fields: 3}},
	"white space": {
		" \t\r\n{ \"y\" : [ 1 , { } ] ,\n\"x\"\t:\r[ 1 , { \"a\" : 2 } ,\"b\" ]\n} \n",
		reading{Rows: []string{`1`, `{ "a" : 2 }`, `"b"`}, Fields: -1},
	},
}

func TestReadings(t *testing.T) {
	t.Parallel()
	for name, tc := range readings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := loose.Parse([]byte(tc.text))
			require.NoError(t, err)
			require.NotNil(t, o)
			got := reading{Text: o.Text("x"), Scalar: o.Scalar("x"), ID: o.ID("x"), Number: o.Number("x"), Fields: -1}
			if value, ok := o.Flag("x"); ok {
				got.Flag = map[bool]string{true: "true", false: "false"}[value]
			}
			if rows, ok := o.List("x"); ok {
				got.Rows = []string{}
				for _, row := range rows {
					got.Rows = append(got.Rows, string(row))
				}
			}
			if inner := o.Object("x"); inner != nil {
				got.Fields = len(inner)
			}
			assert.Equal(t, tc.want, got)
			compareText(t, []byte(tc.text))
		})
	}
}

// notObjects: of these null alone is no fault.
var notObjects = []string{
	``, ` `, `null`, ` null `, `nul`, `true`, `7`, `-`, `"x"`, `"{}"`, `[]`, `[{"x":1}]`, `x`, `{`, `}`, `{"x"}`, `{"x":}`, `{x:1}`,
	`{"x":1,}`, `{,}`, `{"x":1}}`, `{"x":1}{}`, `{"x":1} y`, `{"x":01}`, `{"x":1.}`, `{"x":+1}`, `{"x":tru}`, `{"x":'a'}`, `{"x":"\x"}`,
	`{"x":"\u12"}`, "{\"x\":\"a\nb\"}", "{\"x\":\"\x00\"}", "\ufeff{}", "\u00a0{}", "{}\u00a0", "\v{}", "{}\x00", `{"x":[}]`, `/**/{}`, `{"x":NaN}`,
}

func TestParseRefusesWhatIsNoObject(t *testing.T) {
	t.Parallel()
	for _, text := range notObjects {
		o, err := loose.Parse([]byte(text))
		assert.Equal(t, strings.TrimSpace(text) == "null", err == nil, "%q", text)
		assert.Nil(t, o, "%q", text)
		assert.Empty(t, o.Scalar("x"))
		compareText(t, []byte(text))
	}
}

func TestParseRefusesWhatIsCut(t *testing.T) {
	t.Parallel()
	const text = `{"id":"e\u0076t","n":[-1.5e3,true,null],"o":{"a":{"b":"\\"}}}`
	compareText(t, []byte(text))
	for i := range text {
		_, err := loose.Parse([]byte(text[:i]))
		require.Error(t, err, text[:i])
		compareText(t, []byte(text[:i]))
	}
}

// A text is as deep as encoding/json lets it be, and no deeper.
func TestDepth(t *testing.T) {
	t.Parallel()
	const limit = 10000
	for _, brackets := range [][3]string{{`{"x":`, `7`, `}`}, {`[`, `7`, `]`}, {`[{"x":`, `"}]"`, `}]`}} {
		width := strings.Count(brackets[0], "{") + strings.Count(brackets[0], "[")
		nest := func(levels int) []byte {
			times := levels / width
			return []byte(`{"x":` + strings.Repeat(brackets[0], times) + brackets[1] + strings.Repeat(brackets[2], times) + `,"y":"after"}`)
		}
		o, err := loose.Parse(nest(limit - width))
		require.NoError(t, err)
		assert.Equal(t, "after", o.Text("y"))
		_, err = loose.Parse(nest(limit))
		require.Error(t, err)
		for _, text := range [][]byte{nest(limit - width), nest(limit)} {
			want, wantErr := parseReference(text)
			got, err := loose.Parse(text)
			assert.Equal(t, wantErr == nil, err == nil)
			compareObjects(t, want, got, 1)
		}
	}
}

func TestDecode(t *testing.T) {
	t.Parallel()
	answer := client.Answer{Op: "ask", Status: 200, RequestID: "req_1", Body: []byte(`{"x":"a"}`)}
	o, err := loose.Decode(answer)
	require.NoError(t, err)
	assert.Equal(t, "a", o.Text("x"))

	answer.Body = []byte(`["xyzzy"]`)
	_, err = loose.Decode(answer)
	require.ErrorIs(t, err, client.ErrBadAnswer)
	assert.NotContains(t, err.Error(), "xyzzy")
	var fields map[string]json.RawMessage
	assert.Equal(t, answer.Decode(&fields), err)
}

// What is read is a copy: a text's buffer may be used again.
func TestWhatIsReadIsACopy(t *testing.T) {
	t.Parallel()
	text := []byte(`{"x":"plain","n":12345,"a":["a@example.com"],"t":"2026-09-23T14:40:11Z"}`)
	o, err := loose.Parse(text)
	require.NoError(t, err)
	plain, number, address, id := o.Text("x"), o.Scalar("n"), o.Addresses("a", loose.Value.Text), o.ID("x")
	untrusted := o.Untrusted("x")
	for i := range text {
		text[i] = '#'
	}
	assert.Equal(t, []string{"plain", "12345", "plain", "plain"}, []string{plain, number, id, untrusted.Text()})
	assert.Equal(t, []string{"a@example.com"}, texts(address))
}

func TestTime(t *testing.T) {
	t.Parallel()
	o, err := loose.Parse([]byte(`{"bad":"yesterday","seconds":1790174411,"utc":"2026-09-23T14:40:11.903Z","zone":"2026-09-23T16:40:11+02:00"}`))
	require.NoError(t, err)
	utc := time.Date(2026, 9, 23, 14, 40, 11, 903e6, time.UTC)
	assert.Equal(t, utc, o.Time("utc"))
	assert.Equal(t, utc.Truncate(time.Second), o.Time("zone"))
	assert.Equal(t, utc, o.Time("no field", "bad", "seconds", "utc", "zone"))
	assert.Zero(t, o.Time("bad", "seconds"))
	assert.Zero(t, o.Time())
}

var addressReadings = map[string]struct {
	text string
	want []string // the last, if it begins with "+", only where numbers count as text
}{
	"string":          {`"a@example.com"`, []string{"a@example.com"}},
	"display name":    {`"Ann <a@example.com>"`, []string{"a@example.com"}},
	"comment":         {`"a@example.com (Ann)"`, []string{"a@example.com"}},
	"several in one":  {`"a@example.com, <b@example.com>"`, []string{"a@example.com, <b@example.com>"}},
	"email":           {`{"name":"Ann","email":"a@example.com","address":"b@example.com"}`, []string{"a@example.com"}},
	"address":         {`{"email":null,"address":"Bob <b@example.com>"}`, []string{"b@example.com"}},
	"array":           {`["a@example.com",{"email":"b@example.com"},null,true,[],{},"",["c@example.com"]]`, []string{"a@example.com", "b@example.com"}},
	"empty array":     {`[]`, nil},
	"null":            {`null`, nil},
	"empty object":    {`{}`, nil},
	"number":          {`7`, []string{"+7"}},
	"number in array": {`["a@example.com",7]`, []string{"a@example.com", "+7"}},
	"number as email": {`{"email":7,"address":""}`, []string{"+7"}},
}

func TestAddresses(t *testing.T) {
	t.Parallel()
	for name, tc := range addressReadings {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := []byte(`{"x":` + tc.text + `}`)
			o, err := loose.Parse(text)
			require.NoError(t, err)
			var withNumbers, without []string
			for _, address := range tc.want {
				number, is := strings.CutPrefix(address, "+")
				withNumbers = append(withNumbers, number)
				if !is {
					without = append(without, address)
				}
			}
			assert.Equal(t, withNumbers, texts(o.Addresses("x", loose.Value.Scalar)))
			assert.Equal(t, without, texts(o.Addresses("x", loose.Value.Text)))
			compareText(t, text)
		})
	}
	var none loose.Object
	assert.Empty(t, none.Addresses("x", loose.Value.Text))
}
