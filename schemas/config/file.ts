/** `tollgate.yaml` and the environment. See docs/operating.md, "Settings" and "The configuration file". */
import { z } from 'zod'
import { DEFAULT_CONFIRM_ABOVE, DEFAULT_TRIAL_CREDIT, MINIMUM_TOP_UP } from '../accounts/account.ts'
import { creditsText, parseCredits } from '../money.ts'
import {
  AFTER_CLIENT_LEAVES,
  channelEntry,
  DEFAULT_CHAT_SECONDS,
  ESTIMATES,
  MAX_CHAT_SECONDS,
  modelEntry,
  STRATEGIES,
  UPSTREAM_ERRORS,
} from './catalog.ts'

const limit = z.int().positive().nullable().default(null)

/** Time for which known keys are served while PostgreSQL is down. */
const DEFAULT_DATABASE_GRACE_SECONDS = 60

/** From then on a synchronous image answer is kept alive, and its status is 200. See docs/api-rules.md, "Timeouts". */
const DEFAULT_KEEP_ALIVE_AFTER_SECONDS = 90
/** Shorter than the time-outs of most proxies in front of callers. */
const MAX_KEEP_ALIVE_AFTER_SECONDS = 90

/** A century: an instant that long ago can still be reckoned. */
const MAX_RETENTION_DAYS = 36_500
/** Budgets, refunds and late settlements need the last months. */
const MIN_RETAINED_MONTHS = 2
const MAX_RETAINED_MONTHS = 1200
const retainedMonths = z.int().min(MIN_RETAINED_MONTHS).max(MAX_RETAINED_MONTHS).nullable().default(null)

/** A link opens for seven days: its file lasts as long. */
const MIN_FILE_RETENTION_DAYS = 7

/** A token that is guessed takes longer than anyone has. */
const MIN_METRICS_TOKEN_CHARS = 16

/** With inline files. */
const MAX_BODY_MIB = 32
const DEFAULT_MAX_BODY_MIB = 10

/** Longer than clients and proxies wait for a byte, it keeps nothing alive. */
const MAX_KEEP_ALIVE_SECONDS = 300
/** As OpenAI limits it. */
const MAX_WEBSOCKET_SECONDS = 3600

const LOOPBACK_HOST = /^(localhost|127\.0\.0\.1|\[::1\])$/

/** HTTPS, so that what the provider says is its own; this machine needs none. */
const issuerUrl = z.url().refine((text) => {
  if (!URL.canParse(text)) return false
  const { protocol, hostname } = new URL(text)
  return protocol === 'https:' || (protocol === 'http:' && LOOPBACK_HOST.test(hostname))
}, 'must be an https address')

/** As a browser sends it. */
const webOrigin = z.string().refine((text) => {
  const url = URL.parse(text)
  return url !== null && /^https?:$/.test(url.protocol) && url.origin === text
}, 'must be an origin as a browser sends it, such as https://app.example.com')

/** A provider of OpenID Connect. Its redirect address is `/console/sign-in/oidc/{id}` at the public address. */
const oidcProvider = z.strictObject({
  id: z.string().regex(/^[a-z0-9][a-z0-9-]{0,39}$/, 'has lower-case letters, digits and hyphens, 40 at most'),
  /** On the button of the sign-in page. */
  name: z.string().min(1).max(60),
  issuer: issuerUrl,
  client_id: z.string().min(1),
  client_secret: z.string().min(1),
  /** Default: openid, email, profile. */
  scopes: z.array(z.string().min(1)).optional(),
})
export type OidcProvider = z.infer<typeof oidcProvider>

const MAX_PRESETS = 6
const MAX_SELLER_LINES = 8
const MAX_LINE_CHARS = 80

const topUp = creditsText.refine(
  (credits) => credits >= parseCredits(MINIMUM_TOP_UP),
  `is at least ${MINIMUM_TOP_UP}, the least top-up`,
)

/** Prices of credits by card. See docs/payments.md, "Prices". */
const paymentsEntry = z.strictObject({
  currency: z.string().regex(/^[a-z]{3}$/, 'is the three letters of a currency in lower case, such as usd'),
  /** Credits that one unit of the currency buys. */
  credits_per_unit: creditsText.refine((credits) => credits > 0n, 'is more than 0'),
  /** Amounts of credits that the console offers. */
  presets: z.array(topUp).max(MAX_PRESETS).default([]),
  /** Name and address at the top of receipts, line by line. */
  seller: z.array(z.string().min(1).max(MAX_LINE_CHARS)).max(MAX_SELLER_LINES).default([]),
})

export const SIGN_UPS = ['open', 'invite', 'off'] as const

export const configFile = z.strictObject({
  /** `public`: limits for unknown customers. */
  profile: z.literal('public').nullable().default(null),
  metrics: z
    .strictObject({
      /** Opens the metrics and the details of readiness on the public listener, as a bearer token. */
      token: z
        .string()
        .refine(
          (token) => token === '' || token.length >= MIN_METRICS_TOKEN_CHARS,
          `must have at least ${MIN_METRICS_TOKEN_CHARS} characters; \`openssl rand -hex 32\` makes one`,
        )
        .transform((token) => (token === '' ? null : token))
        .nullable()
        .default(null),
    })
    .prefault({}),
  server: z
    .strictObject({
      /** Of a JSON body, the files that it carries inline left out. */
      max_body_mib: z.int().min(1).max(MAX_BODY_MIB).default(DEFAULT_MAX_BODY_MIB),
      /** Of all request bodies and form fields that a gateway process holds; null: its share of a quarter of the memory. */
      max_buffered_mib: z.int().min(MAX_BODY_MIB).nullable().default(null),
      /** Addresses or networks of proxies whose X-Forwarded-For is trusted. */
      trusted_proxies: z
        .array(
          z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()], {
            error: 'must be an address or a network, such as 10.0.0.0/8',
          }),
        )
        .default([]),
      /** Limits of one client address, in each gateway process; null is no limit. */
      per_address: z
        .strictObject({
          /** Connections opened within ten seconds. */
          connections: limit,
          /** Requests without a valid key. */
          unauthenticated_per_minute: limit,
          /** Request bodies that are held. */
          buffered_mib: limit,
        })
        .prefault({}),
    })
    .prefault({}),
  /** Defaults for every account, and the time of a chat call; null is no limit. */
  limits: z
    .strictObject({
      requests_per_minute: limit,
      concurrency: limit,
      /** The whole of a chat call, streaming included. */
      chat_seconds: z.number().positive().max(MAX_CHAT_SECONDS).default(DEFAULT_CHAT_SECONDS),
      /** A streamed call whose upstream sends no event for this long ends; null: none does. */
      chat_idle_seconds: z.number().positive().max(MAX_CHAT_SECONDS).nullable().default(null),
      /** A WebSocket that is open for this long ends after its call. */
      websocket_seconds: z.number().positive().max(MAX_WEBSOCKET_SECONDS).default(MAX_WEBSOCKET_SECONDS),
    })
    .prefault({}),
  /**
   * The estimate of a chat call: by the formula of the interface, or by all that the request could make the upstream
   * bill, tools, files and thinking included. See docs/api-rules.md, "Pre-charge".
   */
  estimate: z.enum(ESTIMATES).default('specified'),
  /** An upstream's 401, 402 or 403 about the channel's own key reaches the client as 502. */
  hide_auth_errors: z.boolean().default(false),
  /** What a client of the channel's own protocol gets of an upstream's error. */
  upstream_errors: z.enum(UPSTREAM_ERRORS).default('mapped'),
  /** A stream without an event for this long gets a comment; null: no byte is added. */
  keep_alive_seconds: z.int().positive().max(MAX_KEEP_ALIVE_SECONDS).nullable().default(null),
  /** Decides whether the upstream call ends when its client leaves; a model may say otherwise. */
  after_client_leaves: z.enum(AFTER_CLIENT_LEAVES).default('abort'),
  /** Of the models that name none. */
  strategy: z.enum(STRATEGIES).default('priority'),
  /** Sign-up: for everyone, for those who were invited, or for none but those whom an operator creates. */
  signup: z.enum(SIGN_UPS).default('invite'),
  sign_in: z
    .strictObject({
      oidc: z
        .array(oidcProvider)
        .default([])
        .refine(
          (providers) => new Set(providers.map(({ id }) => id)).size === providers.length,
          'has two providers with the same id',
        ),
    })
    .prefault({}),
  /** For prices of providers in US dollars. Default: `payments.credits_per_unit`, where that currency is usd. */
  credits_per_dollar: creditsText
    .refine((credits) => credits > 0n, 'is more than 0')
    .nullable()
    .default(null),
  trial_credit: creditsText.default(parseCredits(DEFAULT_TRIAL_CREDIT)),
  wallet: z
    .strictObject({
      reserve_in_flight: z.boolean().default(true),
      /** Calls of a balance below this reserve over all processes; null: twice the largest estimate seen. */
      exact_below: creditsText
        .refine((amount) => amount >= 0n, 'is never negative')
        .nullable()
        .default(null),
      /** The command line asks before a larger change of a balance. */
      confirm_above: creditsText
        .refine((amount) => amount >= 0n, 'is never negative')
        .default(parseCredits(DEFAULT_CONFIRM_ABOVE)),
    })
    .prefault({}),
  /** Payments by card; null: none. */
  payments: paymentsEntry.nullable().default(null),
  database: z
    .strictObject({ grace_seconds: z.int().min(0).max(3600).default(DEFAULT_DATABASE_GRACE_SECONDS) })
    .prefault({}),
  /** Replicas of each stream; null: 3 on a cluster of at least three servers, else 1. */
  nats: z
    .strictObject({
      replicas: z.literal([1, 3, 5]).nullable().default(null),
    })
    .prefault({}),
  /** The cluster of ClickHouse whose servers all have the call log; null: one server has it. */
  clickhouse: z
    .strictObject({
      cluster: z
        .string()
        .regex(/^[A-Za-z_][A-Za-z0-9_-]{0,63}$/, 'must be the name of a cluster as ClickHouse has it')
        .nullable()
        .default(null),
    })
    .prefault({}),
  /** `cluster`: JetStream stores a settlement before the end of the answer leaves; `local`: only the journal has it. */
  settlement: z.strictObject({ durability: z.enum(['local', 'cluster']).default('local') }).prefault({}),
  /** Months of the call log are dropped this long after they end; null keeps them forever. PostgreSQL has `retention`. */
  logs: z
    .strictObject({
      retention_days: z.int().min(1).max(MAX_RETENTION_DAYS).nullable().default(null),
      /** Beyond a number a minute, refused calls of one key, model and reason share a row. */
      share_refusals: z.boolean().default(false),
    })
    .prefault({}),
  journals: z
    .strictObject({
      /** Folders below which the management API may import journals, besides the data directory. */
      import_roots: z
        .array(z.string().regex(/^\/./, 'must be an absolute path below the root folder'))
        .default([]),
    })
    .prefault({}),
  /** Full months that PostgreSQL keeps besides the current one; null keeps all. */
  retention: z
    .strictObject({
      calls_months: retainedMonths,
      ledger_months: retainedMonths,
      audit_months: retainedMonths,
      tasks_months: retainedMonths,
      /** `detach` leaves a month as a table that nothing reads. */
      mode: z.enum(['drop', 'detach']).default('drop'),
    })
    .prefault({}),
  storage: z
    .strictObject({
      retention_days: z.int().min(MIN_FILE_RETENTION_DAYS).max(MAX_RETENTION_DAYS).nullable().default(null),
    })
    .prefault({}),
  mcp: z
    .strictObject({
      /** Of web pages that may call `/mcp`, besides the service's own. */
      allowed_origins: z.array(webOrigin).default([]),
    })
    .prefault({}),
  /** Receivers of webhooks, and callbacks of tasks. */
  webhooks: z
    .strictObject({
      /** They may have addresses that are not public: they are the operator's own. */
      private_addresses: z.boolean().default(false),
    })
    .prefault({}),
  images: z
    .strictObject({
      keep_alive_after_seconds: z
        .number()
        .positive()
        .max(MAX_KEEP_ALIVE_AFTER_SECONDS)
        .default(DEFAULT_KEEP_ALIVE_AFTER_SECONDS),
    })
    .prefault({}),
  /** Tries after the first, each on another channel where there is one. */
  retries: z.int().min(0).max(10).default(2),
  models: z.array(modelEntry).default([]),
  channels: z.array(channelEntry).default([]),
})
export type ConfigFile = z.infer<typeof configFile>
