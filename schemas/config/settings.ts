/** The environment variables of the service. An empty variable counts as unset. See docs/operating.md, "Settings". */
import { z } from 'zod'
import type { PaymentSettings } from '../payments/provider.ts'

export const ROLES = ['gateway', 'settler', 'tasks'] as const
export type Role = (typeof ROLES)[number]

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const
export type LogLevel = (typeof LOG_LEVELS)[number]

/** Storage of API keys: encrypted, so that they can be shown again, or only as a hash. */
const KEY_STORAGES = ['reveal', 'hash'] as const
export type KeyStorage = (typeof KEY_STORAGES)[number]

export const MASTER_KEY_BYTES = 32
const MAX_WORKERS = 64
const MAX_PORT = 65_535

/** Reads a whole number in plain digits: plain `Number` would accept "0x10" and " 8 ". */
const wholeNumber = (min: number, max: number, hint: string) =>
  z
    .string()
    .refine((text) => /^\d{1,9}$/.test(text) && Number(text) >= min && Number(text) <= max, hint)
    .transform(Number)

function url(schemes: readonly string[], example: string) {
  const hint = `must be a URL that starts with ${schemes.map((s) => `${s}://`).join(' or ')}, such as ${example}`
  return z.string().refine((text) => {
    const parsed = URL.parse(text)
    return parsed !== null && schemes.includes(parsed.protocol.slice(0, -1)) && parsed.hostname !== ''
  }, hint)
}

const httpBase = (example: string) =>
  url(['http', 'https'], example).transform((text) => text.replace(/\/+$/, ''))

/** Hexadecimal or base64, of exactly 32 bytes. */
const masterKey = z.string().transform((text, context): Buffer => {
  const bytes = /^[0-9a-fA-F]{64}$/.test(text)
    ? Buffer.from(text, 'hex')
    : Buffer.from(/^[A-Za-z0-9+/_-]{43}=?$/.test(text) ? text : '', 'base64')
  if (bytes.length === MASTER_KEY_BYTES) return bytes
  const message = `must be ${MASTER_KEY_BYTES} bytes, as 64 hexadecimal digits or base64. Make one with: openssl rand -hex 32`
  context.addIssue({ code: 'custom', message })
  return z.NEVER
})

const roles = z.string().transform((text, context): readonly Role[] => {
  const named = text.split(',').map((role) => role.trim())
  const unknown = named.find((role) => !ROLES.includes(role as Role))
  if (unknown === undefined) return ROLES.filter((role) => named.includes(role))
  context.addIssue({
    code: 'custom',
    message: `must be a comma list of ${ROLES.join(', ')}, not "${unknown}"`,
  })
  return z.NEVER
})

/** The driver takes several hosts with commas between, which is more than a URL. */
const databaseUrl = z
  .string()
  .regex(
    /^postgres(ql)?:\/\/[^\s/]+/,
    'must be a URL that starts with postgres:// or postgresql://, such as postgres://user:password@127.0.0.1:5432/tollgate',
  )
  .refine(
    (text) =>
      !/[?&]target_session_attrs=(?!(any|read-write|read-only|primary|standby|prefer-standby)(&|$))/.test(
        text,
      ),
    'must have a target_session_attrs of any, read-write, read-only, primary, standby or prefer-standby',
  )

/** Several servers of one cluster may be named, with commas between. */
const natsUrl = z
  .string()
  .refine(
    (text) =>
      text
        .split(',')
        .every((server) => /^(nats|tls):\/\/[^\s/?]+\/?(\?credentials=[^\s,]+)?$/.test(server.trim())),
    'must be one or more URLs that start with nats:// or tls://, such as nats://127.0.0.1:4222',
  )

/** A link variable of Kubernetes: `TOLLGATE_PORT=tcp://10.0.0.7:80` for a service named "tollgate". */
const PORT_HINT = `must be a whole number from 0 (any free port) to ${MAX_PORT}. Where Kubernetes set it to tcp://…, turn enableServiceLinks off or name the service otherwise`

const hostName = z.string().regex(/^[A-Za-z0-9.:_-]+$/, 'must be a host name or an IP address')

export const environment = z.object({
  TOLLGATE_HOST: hostName.default('127.0.0.1'),
  TOLLGATE_PORT: wholeNumber(0, MAX_PORT, PORT_HINT).default(8080),
  TOLLGATE_ADMIN_HOST: hostName.default('127.0.0.1'),
  TOLLGATE_ADMIN_PORT: wholeNumber(0, MAX_PORT, PORT_HINT).optional(),
  TOLLGATE_TLS_CERT: z.string().optional(),
  TOLLGATE_TLS_KEY: z.string().optional(),
  TOLLGATE_PUBLIC_URL: httpBase('https://gateway.example.com').optional(),
  TOLLGATE_CONSOLE: z.enum(['on', 'off'], 'must be on or off').default('on'),
  TOLLGATE_CONSOLE_HOST: hostName.optional(),
  TOLLGATE_DATA_DIR: z.string().default('.tollgate'),
  TOLLGATE_CONFIG: z.string().optional(),
  TOLLGATE_MASTER_KEY: masterKey.optional(),
  TOLLGATE_NEW_MASTER_KEY: masterKey.optional(),
  TOLLGATE_KEYS: z.enum(KEY_STORAGES, `must be one of ${KEY_STORAGES.join(', ')}`).optional(),
  TOLLGATE_WORKERS: wholeNumber(1, MAX_WORKERS, `must be a whole number from 1 to ${MAX_WORKERS}`).default(1),
  TOLLGATE_ROLES: roles.default(ROLES),
  DATABASE_URL: databaseUrl.optional(),
  DATABASE_SESSION_URL: databaseUrl.optional(),
  DATABASE_READ_URL: databaseUrl.optional(),
  TOLLGATE_DATABASE_OWNER_URL: databaseUrl.optional(),
  NATS_URL: natsUrl.optional(),
  CLICKHOUSE_URL: url(['http', 'https'], 'http://127.0.0.1:8123').optional(),
  S3_ENDPOINT: httpBase('https://s3.example.com').optional(),
  S3_PUBLIC_ENDPOINT: httpBase('https://files.example.com').optional(),
  S3_REGION: z.string().default('us-east-1'),
  S3_BUCKET: z.string().optional(),
  S3_ACCESS_KEY_ID: z.string().optional(),
  S3_SECRET_ACCESS_KEY: z.string().optional(),
  SMTP_URL: url(['smtp', 'smtps'], 'smtps://user:password@mail.example.com:465').optional(),
  SMTP_FROM: z
    .string()
    .regex(/^[^\r\n]*@[^\r\n]+$/, 'must be an email address, such as Tollgate <noreply@example.com>')
    .optional(),
  STRIPE_SECRET_KEY: z.string().optional(),
  STRIPE_WEBHOOK_SECRET: z.string().optional(),
  STRIPE_API_URL: httpBase('https://api.stripe.com').optional(),
  LOG_LEVEL: z
    .string()
    .toLowerCase()
    .pipe(z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`))
    .default('info'),
})
export type EnvironmentValues = z.infer<typeof environment>

/** An S3-compatible bucket; null in `Settings` where a folder of the data directory serves instead. */
export interface ObjectStoreSettings {
  readonly endpoint: string
  /** The bucket's address for clients; links lead there. */
  readonly publicEndpoint: string
  readonly region: string
  readonly bucket: string
  readonly accessKeyId: string
  readonly secretAccessKey: string
}

/** A mail server; null in `Settings` where none sends mails. */
export interface MailSettings {
  /** With the password, where it needs one. */
  readonly url: string
  readonly from: string
}

/** Files in PEM, absolute. */
export interface TlsFiles {
  readonly cert: string
  readonly key: string
}

export interface Settings {
  readonly host: string
  /** 0: any free port. */
  readonly port: number
  /** The listener for operators, with metrics and details of readiness; null: none. */
  readonly admin: { readonly host: string; readonly port: number } | null
  /** Null: the listener serves plain HTTP. */
  readonly tls: TlsFiles | null
  /** Base of the links handed out, without a slash at its end; null: from host and port. */
  readonly publicUrl: string | null
  /** The web console, served under one host name or any; null: none. */
  readonly console: { readonly host: string | null } | null
  /** Absolute. */
  readonly dataDir: string
  /** Absolute; null: the demonstration. */
  readonly configPath: string | null
  /** 32 bytes; null: kept in the data directory. */
  readonly masterKey: Buffer | null
  /** The key to which `master-key rotate` changes; null: a new one. */
  readonly newMasterKey: Buffer | null
  /** null: as the database has it. */
  readonly keys: KeyStorage | null
  readonly workers: number
  readonly roles: readonly Role[]
  /** null: embedded, here and below. */
  /** PostgreSQL itself, or a pooler in session mode: sessions listen and hold locks. */
  readonly databaseUrl: string | null
  /** A pooler in transaction mode in front of it, for all but sessions; null: there is none. */
  readonly databasePoolUrl: string | null
  /** A standby, for lists and logs; null: the primary has them. */
  readonly databaseReadUrl: string | null
  /** Migrates, and grants the role of `databaseUrl` its privileges; null: that role does both. */
  readonly databaseOwnerUrl: string | null
  readonly natsUrl: string | null
  readonly clickhouseUrl: string | null
  readonly objectStore: ObjectStoreSettings | null
  readonly mail: MailSettings | null
  /** Null: the service takes no cards, the demonstration excepted. */
  readonly payments: PaymentSettings | null
  readonly logLevel: LogLevel
}
