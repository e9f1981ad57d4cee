-- One row, which only the newest leader may write. A fence of mortise has up to 64 bits, without a
-- sign, so it is no bigint.
CREATE TABLE IF NOT EXISTS leader_state (
    id integer PRIMARY KEY,
    value text NOT NULL DEFAULT '',
    fence numeric(20) NOT NULL DEFAULT 0
);
INSERT INTO leader_state (id) VALUES (1) ON CONFLICT DO NOTHING;
