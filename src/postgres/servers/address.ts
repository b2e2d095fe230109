/** Servers and TLS as a URL of PostgreSQL names them: several hosts of one cluster, and files of certificates. */
import { readFileSync } from 'node:fs'

export interface Address {
  readonly host: string
  readonly port: number
}

/** Which of several servers to use. Names and meaning are those of libpq. */
export const TARGETS = ['any', 'read-write', 'read-only', 'primary', 'standby', 'prefer-standby'] as const
export type Target = (typeof TARGETS)[number]

/** Options of `tls.connect`, in PEM. */
interface TlsOptions {
  readonly ca?: Buffer
  readonly cert?: Buffer
  readonly key?: Buffer
}

export interface ServerUrl {
  /** For the client: only the first host, without the parameters that are read here. */
  readonly url: string
  readonly addresses: readonly Address[]
  /** Null: the one server of the URL, whatever it is. */
  readonly target: Target | null
  /** Null: as the URL says by `sslmode`. */
  readonly tls: TlsOptions | null
}

const DEFAULT_PORT = 5432
const PARTS = /^(\w+:\/\/(?:[^/?#]*@)?)([^/?#]*)([^?#]*)(?:\?([^#]*))?$/
const FILES = { ca: 'sslrootcert', cert: 'sslcert', key: 'sslkey' } as const

/**
 * Reads a URL.
 * @param usual the servers meant by several hosts without `target_session_attrs`
 * @throws Error that names a host, value or file that cannot be used
 */
export function parseServerUrl(url: string, usual: Target): ServerUrl {
  const [, start = '', hosts = '', path = '', query = ''] = PARTS.exec(url) ?? []
  if (start === '') throw new Error('A URL of PostgreSQL must start with postgres://')
  const names = hosts.split(',')
  const parameters = new URLSearchParams(query)
  const named = parameters.get('target_session_attrs')
  const target = named === null ? null : TARGETS.find((known) => known === named)
  if (target === undefined)
    throw new Error(`target_session_attrs must be one of ${TARGETS.join(', ')}, not "${named}"`)
  const tls = readTls(parameters)
  for (const name of ['target_session_attrs', ...Object.values(FILES)]) parameters.delete(name)
  const rest = parameters.toString()
  return {
    url: `${start}${names[0]}${path}${rest === '' ? '' : `?${rest}`}`,
    addresses: names.map(parseAddress),
    target: target ?? (names.length > 1 ? usual : null),
    tls,
  }
}

/** Returns servers and database of a URL as text, without user and password. */
export function printServers(url: string): string {
  const [, , hosts = '', path = ''] = PARTS.exec(url) ?? []
  return hosts + path
}

function parseAddress(name: string): Address {
  const [, bracketed, host = bracketed ?? '', port] =
    /^(?:\[([^\]]+)\]|([^:]*))(?::(\d{1,5}))?$/.exec(name) ?? []
  if (host === '')
    throw new Error(`"${name}" is no server of PostgreSQL; write host:port, with commas between`)
  return { host: decodeURIComponent(host), port: port === undefined ? DEFAULT_PORT : Number(port) }
}

/** A server with a named authority is always checked, by authority and name, whatever `sslmode` says beside `disable`. */
function readTls(parameters: URLSearchParams): TlsOptions | null {
  const mode = parameters.get('sslmode')
  const given = Object.entries(FILES).filter(([, name]) => parameters.has(name))
  if (given.length === 0 || mode === 'disable') return null
  const files = given.filter(([, name]) => parameters.get(name) !== 'system')
  return Object.fromEntries(files.map(([option, name]) => [option, readPem(name, parameters.get(name)!)]))
}

function readPem(name: string, path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    throw new Error(
      `The file of ${name} in the URL of PostgreSQL cannot be read: ${(error as Error).message}`,
    )
  }
}
