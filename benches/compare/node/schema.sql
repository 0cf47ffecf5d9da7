CREATE TABLE operations (
    transaction_id bigint PRIMARY KEY,
    merchant text NOT NULL,
    direction text NOT NULL,
    order_id text NOT NULL,
    -- What a repeated request is compared by.
    content_hash bytea NOT NULL,
    amount numeric(15, 2) NOT NULL,
    currency char(3) NOT NULL,
    shop text NOT NULL,
    customer_account_id bigint,
    callback_url text NOT NULL,
    return_url text NOT NULL,
    fields jsonb NOT NULL,
    redirect_url text NOT NULL,
    status text NOT NULL DEFAULT 'PENDING',
    created_at timestamptz NOT NULL DEFAULT now(),
    UNIQUE (merchant, direction, order_id)
);
