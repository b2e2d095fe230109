/** The environment, read once at start: typed settings, or everything that is wrong with them. */
import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import {
  type EnvironmentValues,
  environment,
  type ObjectStoreSettings,
  type Settings,
  type TlsFiles,
} from '../../schemas/config/settings.ts'
import type { PaymentSettings } from '../../schemas/payments/provider.ts'
import { findNearest } from '../core/suggest.ts'
import type { Environment } from './source.ts'

/** Used from the working folder when it exists and `TOLLGATE_CONFIG` is not set. */
const DEFAULT_CONFIG_FILE = 'tollgate.yaml'

interface SettingProblem {
  readonly variable: string
  /** The fault and the remedy. Never contains a value that may be a secret. */
  readonly message: string
}

export class SettingsError extends Error {
  readonly problems: readonly SettingProblem[]
  constructor(problems: readonly SettingProblem[]) {
    super(problems.map(({ variable, message }) => `${variable} ${message}.`).join('\n'))
    this.name = 'SettingsError'
    this.problems = problems
  }
}

/**
 * Reads the settings. An empty variable counts as unset. Relative paths start at `folder`.
 * @throws {SettingsError} with all problems at once
 */
export function readSettings(env: Environment, folder = process.cwd()): Settings {
  const parsed = environment.safeParse(dropEmpty(env))
  if (!parsed.success) {
    throw new SettingsError(
      parsed.error.issues.map(({ path, message }) => ({ variable: String(path[0]), message })),
    )
  }
  const values = parsed.data
  const problems = [
    ...checkMasterKey(values),
    ...checkDatabase(values),
    ...checkObjectStore(values),
    ...checkPair('SMTP_URL', 'SMTP_FROM', values),
    ...checkPair('TOLLGATE_TLS_CERT', 'TOLLGATE_TLS_KEY', values),
    // A value with only commas names no secret.
    ...checkPair('STRIPE_SECRET_KEY', 'STRIPE_WEBHOOK_SECRET', {
      ...values,
      STRIPE_WEBHOOK_SECRET: readWebhookSecrets(values)[0],
    }),
  ]
  if (problems.length > 0) throw new SettingsError(problems)
  return {
    host: values.TOLLGATE_HOST,
    port: values.TOLLGATE_PORT,
    admin:
      values.TOLLGATE_ADMIN_PORT === undefined
        ? null
        : { host: values.TOLLGATE_ADMIN_HOST, port: values.TOLLGATE_ADMIN_PORT },
    tls: readTlsFiles(values, folder),
    publicUrl: values.TOLLGATE_PUBLIC_URL ?? null,
    console: values.TOLLGATE_CONSOLE === 'off' ? null : { host: values.TOLLGATE_CONSOLE_HOST ?? null },
    dataDir: resolve(folder, values.TOLLGATE_DATA_DIR),
    configPath: findConfigPath(env, folder),
    masterKey: values.TOLLGATE_MASTER_KEY ?? null,
    newMasterKey: values.TOLLGATE_NEW_MASTER_KEY ?? null,
    keys: values.TOLLGATE_KEYS ?? null,
    workers: values.TOLLGATE_WORKERS,
    roles: values.TOLLGATE_ROLES,
    databaseUrl: values.DATABASE_SESSION_URL ?? values.DATABASE_URL ?? null,
    databasePoolUrl: values.DATABASE_SESSION_URL ? (values.DATABASE_URL ?? null) : null,
    databaseReadUrl: values.DATABASE_READ_URL ?? null,
    databaseOwnerUrl: values.TOLLGATE_DATABASE_OWNER_URL ?? null,
    natsUrl: values.NATS_URL ?? null,
    clickhouseUrl: values.CLICKHOUSE_URL ?? null,
    objectStore: readObjectStore(values),
    mail: values.SMTP_URL && values.SMTP_FROM ? { url: values.SMTP_URL, from: values.SMTP_FROM } : null,
    payments: readPayments(values),
    logLevel: values.LOG_LEVEL,
  }
}

const OWN_PREFIX = 'TOLLGATE_'
/** A client's key in the examples of the documentation. */
const CLIENT_KEY = 'TOLLGATE_KEY'

/** Returns the variables that are no settings and are called nearly as one, with its name: likely misspelt ones. */
export function findMisspelledSettings(
  env: Environment,
): { readonly variable: string; readonly meant: string }[] {
  const known = Object.keys(environment.shape).filter((name) => name.startsWith(OWN_PREFIX))
  return Object.keys(env)
    .filter((name) => name.startsWith(OWN_PREFIX) && name !== CLIENT_KEY && !known.includes(name))
    .flatMap((variable) => {
      const meant = findNearest(variable, known)
      return meant === null ? [] : [{ variable, meant }]
    })
}

/** Returns the absolute path of the configuration file of these variables; null means the demonstration. */
export function findConfigPath(env: Environment, folder = process.cwd()): string | null {
  if (env.TOLLGATE_CONFIG) return resolve(folder, env.TOLLGATE_CONFIG)
  const usual = resolve(folder, DEFAULT_CONFIG_FILE)
  return existsSync(usual) ? usual : null
}

/** Returns the address for clients on this machine of a service that listens on `host` and `port`. */
export function localUrl(host: string, port: number, scheme: 'http' | 'https' = 'http'): string {
  if (host === '0.0.0.0') return `${scheme}://127.0.0.1:${port}`
  if (host === '::') return `${scheme}://[::1]:${port}`
  return `${scheme}://${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** Returns whether only this machine reaches a listener on `host`. */
export const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || /^127(\.\d+){3}$/.test(host)

function dropEmpty(env: Environment): Environment {
  const entries = Object.entries(env).map(([name, value]) => [name, value?.trim()] as const)
  return Object.fromEntries(entries.filter(([, value]) => value !== ''))
}

/** Requires a master key with a shared database: a generated one would lock others out of each other's keys. */
function checkMasterKey(values: EnvironmentValues): SettingProblem[] {
  if (values.TOLLGATE_MASTER_KEY || !values.DATABASE_URL) return []
  const message =
    'is required where DATABASE_URL is set, and must be the same in every process. Make one with: openssl rand -hex 32'
  return [{ variable: 'TOLLGATE_MASTER_KEY', message }]
}

function readTlsFiles(
  { TOLLGATE_TLS_CERT: cert, TOLLGATE_TLS_KEY: key }: EnvironmentValues,
  folder: string,
): TlsFiles | null {
  return cert && key ? { cert: resolve(folder, cert), key: resolve(folder, key) } : null
}

/** Variables that need DATABASE_URL, and why. */
const BESIDE_DATABASE_URL = [
  ['TOLLGATE_DATABASE_OWNER_URL', 'the embedded PostgreSQL has both roles by itself'],
  ['DATABASE_SESSION_URL', 'that one leads to the pooler'],
  ['DATABASE_READ_URL', 'the embedded PostgreSQL has no standby'],
] as const

function checkDatabase(values: EnvironmentValues): SettingProblem[] {
  if (values.DATABASE_URL) return []
  return BESIDE_DATABASE_URL.filter(([variable]) => values[variable]).map(([variable, why]) => ({
    variable,
    message: `has no place where DATABASE_URL is not set: ${why}`,
  }))
}

/** Checks that both variables are given, or neither. */
function checkPair(a: string, b: string, values: Readonly<Record<string, unknown>>): SettingProblem[] {
  const hasFirst = values[a] !== undefined
  if (hasFirst === (values[b] !== undefined)) return []
  const [given, missing] = hasFirst ? [a, b] : [b, a]
  return [{ variable: missing, message: `is required where ${given} is set` }]
}

const readWebhookSecrets = ({ STRIPE_WEBHOOK_SECRET = '' }: EnvironmentValues): string[] =>
  STRIPE_WEBHOOK_SECRET.split(',')
    .map((secret) => secret.trim())
    .filter((secret) => secret !== '')

function readPayments(values: EnvironmentValues): PaymentSettings | null {
  const { STRIPE_SECRET_KEY: secretKey, STRIPE_API_URL: apiUrl = null } = values
  return secretKey === undefined ? null : { secretKey, webhookSecrets: readWebhookSecrets(values), apiUrl }
}

const OBJECT_STORE_VARIABLES = [
  'S3_ENDPOINT',
  'S3_BUCKET',
  'S3_ACCESS_KEY_ID',
  'S3_SECRET_ACCESS_KEY',
] as const

function checkObjectStore(values: EnvironmentValues): SettingProblem[] {
  const given = OBJECT_STORE_VARIABLES.filter((variable) => values[variable] !== undefined)
  if (given.length === 0) return []
  return OBJECT_STORE_VARIABLES.filter((variable) => values[variable] === undefined).map((variable) => ({
    variable,
    message: `is required where ${given.join(' and ')} is set. Set all of them for a bucket, or none for a folder`,
  }))
}

function readObjectStore(values: EnvironmentValues): ObjectStoreSettings | null {
  const { S3_ENDPOINT, S3_BUCKET, S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY } = values
  if (!S3_ENDPOINT || !S3_BUCKET || !S3_ACCESS_KEY_ID || !S3_SECRET_ACCESS_KEY) return null
  return {
    endpoint: S3_ENDPOINT,
    publicEndpoint: values.S3_PUBLIC_ENDPOINT ?? S3_ENDPOINT,
    region: values.S3_REGION,
    bucket: S3_BUCKET,
    accessKeyId: S3_ACCESS_KEY_ID,
    secretAccessKey: S3_SECRET_ACCESS_KEY,
  }
}
