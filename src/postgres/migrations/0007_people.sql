-- People, what signs them in, and management tokens. No secret is kept: only what checks one.

CREATE TABLE users (
  id                text PRIMARY KEY,
  email             text NOT NULL,
  name              text NOT NULL,
  locale            text NOT NULL DEFAULT 'en' CHECK (locale IN ('en', 'zh')),
  -- The personal account that the user owns.
  account_id        text NOT NULL UNIQUE REFERENCES accounts,
  installation_role text CHECK (installation_role IN ('operator', 'auditor')),
  enabled           boolean NOT NULL DEFAULT true,
  created_at        timestamptz NOT NULL DEFAULT now(),
  -- The last sign-in.
  signed_in_at      timestamptz
);
CREATE UNIQUE INDEX users_email ON users (lower(email));

CREATE TABLE sessions (
  id           text PRIMARY KEY,
  -- SHA-256 of the token in the cookie.
  token_hash   bytea NOT NULL UNIQUE CHECK (length(token_hash) = 32),
  user_id      text NOT NULL REFERENCES users,
  created_at   timestamptz NOT NULL DEFAULT now(),
  last_seen_at timestamptz NOT NULL DEFAULT now(),
  -- When the user last proved who they are.
  confirmed_at timestamptz NOT NULL DEFAULT now(),
  user_agent   text NOT NULL,
  address      text NOT NULL
);
CREATE INDEX sessions_user ON sessions (user_id);

-- Links that sign in once.
CREATE TABLE sign_in_links (
  -- SHA-256 of the token in the link.
  token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
  user_id    text NOT NULL REFERENCES users,
  created_by text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  expires_at timestamptz NOT NULL,
  used_at    timestamptz,
  -- In a mail, which only the owner of the mailbox can open.
  is_mailed  boolean NOT NULL DEFAULT false
);
CREATE INDEX sign_in_links_user ON sign_in_links (user_id);

-- argon2id, with parameters and salt.
CREATE TABLE passwords (
  user_id       text PRIMARY KEY REFERENCES users,
  password_hash text NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE passkeys (
  id            text PRIMARY KEY,
  user_id       text NOT NULL REFERENCES users,
  name          text NOT NULL,
  -- In base64url, as browsers name it.
  credential_id text NOT NULL UNIQUE,
  public_key    bytea NOT NULL,
  counter       bigint NOT NULL,
  transports    text[] NOT NULL,
  created_at    timestamptz NOT NULL DEFAULT now(),
  last_used_at  timestamptz
);
CREATE INDEX passkeys_user ON passkeys (user_id);

-- Persons at OpenID Connect providers of the configuration.
CREATE TABLE identities (
  provider   text NOT NULL,
  subject    text NOT NULL,
  user_id    text NOT NULL REFERENCES users,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (provider, subject)
);
CREATE UNIQUE INDEX identities_user ON identities (user_id, provider);

-- One-time codes by time; in force once a code has confirmed them.
CREATE TABLE totps (
  user_id       text PRIMARY KEY REFERENCES users,
  -- Sealed with the master key.
  sealed_secret bytea NOT NULL,
  -- The period of the last code that was accepted: no code is accepted twice.
  last_period   bigint NOT NULL DEFAULT 0,
  created_at    timestamptz NOT NULL DEFAULT now(),
  confirmed_at  timestamptz
);

CREATE TABLE recovery_codes (
  code_hash bytea NOT NULL CHECK (length(code_hash) = 32),
  user_id   text NOT NULL REFERENCES users,
  PRIMARY KEY (user_id, code_hash)
);

CREATE TABLE invitations (
  id                text PRIMARY KEY,
  -- SHA-256 of the token in the link.
  token_hash        bytea NOT NULL UNIQUE CHECK (length(token_hash) = 32),
  email             text NOT NULL,
  -- The organization to become a member of, and the role there; null: none.
  account_id        text REFERENCES accounts,
  role              text CHECK (role IN ('owner', 'admin', 'billing', 'member')),
  installation_role text CHECK (installation_role IN ('operator', 'auditor')),
  created_by        text NOT NULL,
  created_at        timestamptz NOT NULL DEFAULT now(),
  expires_at        timestamptz NOT NULL,
  used_at           timestamptz,
  revoked_at        timestamptz,
  CHECK ((account_id IS NULL) = (role IS NULL))
);
CREATE INDEX invitations_account ON invitations (account_id, id);

-- Sign-ins that wait for their second step, for minutes.
CREATE TABLE sign_in_tickets (
  -- SHA-256 of the token that the browser holds.
  token_hash bytea PRIMARY KEY CHECK (length(token_hash) = 32),
  purpose    text NOT NULL,
  -- null: a visitor.
  user_id    text REFERENCES users,
  data       jsonb NOT NULL,
  expires_at timestamptz NOT NULL
);

-- Attempts to sign in that count against a limit: those that failed, and those that are being checked.
CREATE TABLE sign_in_attempts (
  id      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  -- SHA-256 of the account or the address.
  subject bytea NOT NULL,
  at      timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX sign_in_attempts_subject ON sign_in_attempts (subject, at);

CREATE TABLE management_tokens (
  id           text PRIMARY KEY,
  -- SHA-256 of the token.
  token_hash   bytea NOT NULL UNIQUE CHECK (length(token_hash) = 32),
  -- The first characters: what any output may show.
  prefix       text NOT NULL,
  name         text NOT NULL,
  -- null: the installation.
  account_id   text REFERENCES accounts,
  scopes       text[] NOT NULL,
  created_by   text NOT NULL,
  created_at   timestamptz NOT NULL DEFAULT now(),
  expires_at   timestamptz,
  last_used_at timestamptz,
  revoked_at   timestamptz
);
CREATE INDEX management_tokens_account ON management_tokens (account_id, id);

-- Users of an open sign-up who have not shown that their email is theirs.
CREATE TABLE unproven_emails (
  user_id text PRIMARY KEY REFERENCES users
);

-- Filters of a page of the console under a name that their user gave them.
CREATE TABLE saved_views (
  user_id    text NOT NULL REFERENCES users (id) ON DELETE CASCADE,
  page       text NOT NULL,
  name       text NOT NULL,
  query      text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (user_id, page, name)
);
