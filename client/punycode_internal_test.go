package client

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// RFC 3492, section 7.1; letters in lower case, as the encoder writes them.
func TestPunycodeVectors(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]struct{ in, want string }{
		"Arabic (Egyptian)":      {"ليهمابتكلموشعربي؟", "egbpdaj6bu4bxfgehfvwxn"},
		"Chinese (simplified)":   {"他们为什么不说中文", "ihqwcrb4cv8a8dqg056pqjye"},
		"Chinese (traditional)":  {"他們爲什麽不說中文", "ihqwctvzc91f659drss3x8bo0yb"},
		"Czech":                  {"pročprostěnemluvíčesky", "proprostnemluvesky-uyb24dma41a"},
		"Hebrew":                 {"למההםפשוטלאמדבריםעברית", "4dbcagdahymbxekheh6e0a7fei0b"},
		"Hindi":                  {"यहलोगहिन्दीक्योंनहींबोलसकतेहैं", "i1baa7eci9glrd9b2ae1bj0hfcgg6iyaf8o0a1dig0cd"},
		"Japanese":               {"なぜみんな日本語を話してくれないのか", "n8jok5ay5dzabd5bym9f0cm5685rrjetr6pdxa"},
		"Korean":                 {"세계의모든사람들이한국어를이해한다면얼마나좋을까", "989aomsvi5e83db1d2a355cv1e0vak1dwrv93d5xbh15a0dt30a5jpsd879ccm6fea98c"},
		"Russian":                {"почемужеонинеговорятпорусски", "b1abfaaepdrnnbgefbadotcwatmq2g4l"},
		"Spanish":                {"porquénopuedensimplementehablarenespañol", "porqunopuedensimplementehablarenespaol-fmd56a"},
		"Vietnamese":             {"tạisaohọkhôngthểchỉnóitiếngviệt", "tisaohkhngthchnitingvit-kjcr8268qyxafd2f1b9g"},
		"Digits":                 {"3年b組金八先生", "3b-ww4c5e180e575a65lsy2b"},
		"Hyphens":                {"-with-super-monkeys", "-with-super-monkeys-"},
		"Only wide":              {"ひとつ屋根の下2", "2-u9tlzr9756bt3uc0v"},
		"One":                    {"パフィーdeルンバ", "de-jg4avhby1noc0d"},
		"Another":                {"そのスピードで", "d9juau41awczczp"},
		"Beyond the first plane": {"\U0001f600", "e28h"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, v.want, punycode(v.in))
		})
	}
}
