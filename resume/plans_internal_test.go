package resume

import (
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/replywake/replywake/internal/schema"
	"github.com/replywake/replywake/internal/sqldb"
	"github.com/replywake/replywake/internal/testdb"
)

// few are statements that read all rows of an index of the engine's: it holds
// only what waits for people or has no outcome, or a person asked for it.
var few = []string{
	"Backlog", "MailReview", "SendOpen", "SendDoubt",
	"ForgetLive", "ForgetSends", "ForgetMail", "ForgetRuns", "ForgetWorkflows", "ForgetDecisions", "ForgetHistory",
}

// No statement reads a whole table, or all that an engine has of it. SQLite
// says so in its plans, without statistics. It takes a partial index only for a
// query that has the index's condition word for word.
func TestEveryStatementHasAnIndex(t *testing.T) {
	t.Parallel()
	db := sqldb.SQLite(testdb.SQLite(t))
	require.NoError(t, schema.Migrate(t.Context(), db))
	whole := regexp.MustCompile(`^SCAN replywake_|^SCAN [a-z] USING|\((engine|stream|name)=\?\)$`)
	parameter := regexp.MustCompile(`[?$](\d+)`)
	statements := reflect.ValueOf(newStatements(db.Dialect))
	for i := range statements.NumField() {
		name, query := statements.Type().Field(i).Name, statements.Field(i).String()
		if query == "" {
			continue
		}
		args := []any{}
		for _, m := range parameter.FindAllStringSubmatch(query, -1) {
			n, err := strconv.Atoi(m[1])
			require.NoError(t, err)
			for len(args) < n {
				args = append(args, "[]")
			}
		}
		found := []string{}
		require.NoError(t, db.Read().Query(t.Context(), "explain query plan "+query, args, func(scan sqldb.Scan) error {
			var id, parent, unused int
			var line string
			err := scan(&id, &parent, &unused, &line)
			if whole.MatchString(line) && !strings.Contains(line, "engines") && !strings.Contains(line, "streams") {
				found = append(found, line)
			}
			return err
		}), name)
		if !slices.Contains(few, name) {
			require.Empty(t, found, "%s: %s", name, query)
		}
	}
}
