/** Common parts of the requests of all media adapters. */
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import type { FileRef, MediaJob } from '../../../schemas/media/job.ts'
import { type HeaderFields, keyField } from '../channel.ts'
import type { FormPart, MediaRequest } from './adapter.ts'

/** Returns the key header of an upstream; nearly all use a bearer token. */
export type KeyHeader = (channel: ChannelEntry) => readonly [string, string]

const bearer: KeyHeader = (channel) => keyField(channel, 'authorization')

const headersOf = (channel: ChannelEntry, key: KeyHeader, accept: string): HeaderFields => [
  key(channel),
  ['accept', accept],
  ['accept-encoding', 'identity'],
  ['user-agent', 'tollgate'],
  ...Object.entries(channel.headers).map(([name, value]) => [name.toLowerCase(), value] as const),
]

interface Options {
  readonly key?: KeyHeader
  readonly accept?: string
}

function build(
  channel: ChannelEntry,
  method: MediaRequest['method'],
  path: string,
  body: MediaRequest['body'],
  { key = bearer, accept = 'application/json' }: Options = {},
): MediaRequest {
  return { method, url: `${channel.base_url}${path}`, headers: headersOf(channel, key, accept), body }
}

export const getRequest = (channel: ChannelEntry, path: string, options?: Options): MediaRequest =>
  build(channel, 'GET', path, null, options)

export const bareRequest = (channel: ChannelEntry, method: 'POST' | 'DELETE', path: string): MediaRequest =>
  build(channel, method, path, null)

export const jsonRequest = (
  channel: ChannelEntry,
  path: string,
  value: unknown,
  options?: Options,
): MediaRequest => build(channel, 'POST', path, { type: 'json', value }, options)

export const formRequest = (
  channel: ChannelEntry,
  path: string,
  parts: readonly FormPart[],
  options?: Options,
): MediaRequest => build(channel, 'POST', path, { type: 'form', parts }, options)

/** Returns a file as a part of a form. One that was never stored stays a link, which the upstream will refuse. */
export const filePart = (name: string, file: FileRef): FormPart =>
  file.from === 'url'
    ? { name, value: file.url }
    : { name, file: { key: file.key, mediaType: file.media_type, bytes: file.bytes, name: file.name } }

export const isLink = (file: FileRef): boolean => file.from === 'url'

/** Returns one part of a path. Dots alone are refused: they would leave the folder in any spelling. */
export const pathPart = (text: string): string => (/^\.+$/.test(text) ? '-' : encodeURIComponent(text))

type Fields = Readonly<Record<string, unknown>>

/** Returns the fields that are defined. */
export const definedFields = (fields: Fields): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined))

/** Throws for a job of another kind than the adapter's: routing was wrong. */
export function notServed(job: MediaJob): never {
  throw new Error(`no request for ${job.work}`)
}
