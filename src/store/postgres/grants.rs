//! Who else may create in the schemas that names are looked for in. Such a user could put a table or a function in front of
//! those that are meant: PostgreSQL takes the function whose arguments fit best, wherever in `search_path` it is.

use deadpool_postgres::Transaction;

use super::fault::Fault;
use super::row::get;

/// Roles, or `''` for everybody; not the one that asks, nor those that rule over the tables anyway.
const OTHERS: &str = "SELECT DISTINCT n.nspname::text, coalesce(r.rolname::text, '') FROM pg_namespace n \
    CROSS JOIN LATERAL aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) AS a \
    LEFT JOIN pg_roles r ON r.oid = a.grantee \
    WHERE n.nspname = ANY (current_schemas(false)) AND a.privilege_type = 'CREATE' AND a.grantee <> n.nspowner \
    AND coalesce(NOT r.rolsuper AND r.rolname <> current_user, true) AND a.grantee <> \
    (SELECT c.relowner FROM pg_class c WHERE c.oid = to_regclass('paybridge_schema')) ORDER BY 1, 2";

/// What is wrong with that, and the remedy, a line each.
pub(super) async fn to_others(transaction: &Transaction<'_>) -> Result<Vec<String>, Fault> {
    let rows = transaction.query(OTHERS, &[]).await?;
    rows.iter()
        .map(|row| {
            let (schema, role): (&str, &str) = (get(row, 0)?, get(row, 1)?);
            let (who, from) = match role {
                "" => ("everybody".to_owned(), "PUBLIC"),
                role => (format!("the role {role}"), role),
            };
            Ok(format!(
                "{who} may create in {schema}, and so put a function in front of one that is called: \
                 REVOKE CREATE ON SCHEMA {schema} FROM {from}"
            ))
        })
        .collect()
}
