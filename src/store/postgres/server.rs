//! What a database must be, checked whenever a store is opened: what is otherwise noticed request by request.

use deadpool_postgres::{Object, PoolError};
use tokio::time::timeout;
use tokio_postgres::Client;

use super::connect::HOST_TIMEOUT;
use super::errors::PgError;
use super::node::PgNode;
use super::presence;
use super::transaction::value;

/// The encoding that holds every text.
const ENCODING: &str = "UTF8";

/// How often two connections are compared. One comparison recognizes a pooler without other clients.
const COMPARISONS: u32 = 3;

/// Checks the encodings of the database and the connection, and that the connection has a session of its own. From then on
/// connections take the lock of their release: see [`presence`].
///
/// # Errors
/// The database does not respond. The inner error is why it is unsuitable, as the end of a line about the store.
pub(super) async fn check(node: &PgNode) -> Result<Result<(), String>, PgError> {
    // Taken from the pool, so that there is room for the other one.
    let client = Object::take(node.client().await?.into_object());
    let refused = timeout(HOST_TIMEOUT, refused_encoding(&client)).await.unwrap_or(Err(PgError::Silence))?;
    if let Some(refused) = refused {
        return Ok(Err(refused));
    }
    let other = match node.client().await {
        Ok(other) => other,
        // The only connection there is shares its session with none.
        Err(refused) if refused.connection_refusal().is_some() => {
            node.oldest.set_checked();
            return Ok(Ok(()));
        }
        Err(error) => return Err(error),
    };
    let is_shared = timeout(HOST_TIMEOUT, is_shared(&client, &other)).await.unwrap_or(Err(PgError::Silence))?;
    if is_shared {
        return Ok(Err(SHARED.to_owned()));
    }
    if !node.oldest.set_checked() {
        // It was made before, and stays in the pool.
        let entered = timeout(HOST_TIMEOUT, presence::enter(&other, &node.oldest)).await;
        entered.map_err(|_| PgError::Silence)?.map_err(|refused| PgError::Pool(PoolError::PostCreateHook(refused)))?;
    }
    Ok(Ok(()))
}

async fn refused_encoding(client: &Client) -> Result<Option<String>, PgError> {
    let database = value(client, "SHOW server_encoding").await?;
    if database != ENCODING {
        return Ok(Some(format!(
            "the database's encoding is {database}, which cannot hold every order_id: the store needs one that was \
             created with ENCODING 'UTF8' TEMPLATE template0"
        )));
    }
    let connection = value(client, "SHOW client_encoding").await?;
    Ok((connection != ENCODING).then(|| {
        format!("the connection's encoding is {connection}: the server, or a pooler before it, must leave it UTF8")
    }))
}

const SHARED: &str = "connections share the server's sessions, as behind a pooler in transaction or statement mode: connect \
    to the server itself, or set the pooler to session mode for this database (PgBouncer: pool_mode = session)";

/// Reports whether a pooler gives each transaction any session of the server: then `client` meets another one in its turn, or
/// while its own is taken, or another connection meets that of `client`. Only simple queries are used: prepared statements
/// fail there.
async fn is_shared(client: &Client, other: &Client) -> Result<bool, PgError> {
    for _ in 0..COMPARISONS {
        let own = session(client).await?;
        if session(client).await? != own || session(other).await? == own {
            return Ok(true);
        }
        other.batch_execute("BEGIN").await?;
        let is_shared = session(other).await? == own || session(client).await? != own;
        other.batch_execute("ROLLBACK").await?;
        if is_shared {
            return Ok(true);
        }
    }
    Ok(false)
}

async fn session(client: &Client) -> Result<String, PgError> {
    Ok(value(client, "SELECT pg_backend_pid()").await?)
}
