/** Common parts of the requests of all media adapters. */
import type { ChannelEntry } from '../../../schemas/config/catalog.ts'
import type { FileRef, MediaJob } from '../../../schemas/media/job.ts'
import { type HeaderFields, keyFields } from '../channel.ts'
import type { FormPart, MediaRequest } from './adapter.ts'

/** Returns the key header of an upstream; nearly all use a bearer token. */
export type KeyHeader = (channel: ChannelEntry) => HeaderFields

const bearer: KeyHeader = (channel) => keyFields(channel, 'authorization')

/** Returns the headers: those of the channel replace those of the adapter. */
function makeHeaders(
  channel: ChannelEntry,
  { key = bearer, accept = 'application/json', headers = {} }: RequestOptions,
): HeaderFields {
  const configured = Object.entries(channel.headers).map(
    ([name, value]) => [name.toLowerCase(), value] as const,
  )
  return [
    ...(channel.auth === undefined ? key(channel) : []),
    ['accept', accept],
    ['accept-encoding', 'identity'],
    ['user-agent', 'tollgate'],
    ...Object.entries<string>({ ...headers, ...Object.fromEntries(configured) }),
  ]
}

interface RequestOptions {
  readonly key?: KeyHeader
  readonly accept?: string
  /** Further ones, by their names in lower case. */
  readonly headers?: Readonly<Record<string, string>>
}

function build(
  channel: ChannelEntry,
  method: MediaRequest['method'],
  path: string,
  body: MediaRequest['body'],
  options: RequestOptions = {},
): MediaRequest {
  return {
    method,
    url: `${channel.base_url}${path}`,
    headers: makeHeaders(channel, options),
    body,
    ...(channel.auth !== undefined && { authorizedAs: channel }),
  }
}

export const getRequest = (channel: ChannelEntry, path: string, options?: RequestOptions): MediaRequest =>
  build(channel, 'GET', path, null, options)

export const bareRequest = (
  channel: ChannelEntry,
  method: 'POST' | 'PUT' | 'DELETE',
  path: string,
  options?: RequestOptions,
): MediaRequest => build(channel, method, path, null, options)

export const jsonRequest = (
  channel: ChannelEntry,
  path: string,
  value: unknown,
  options?: RequestOptions,
): MediaRequest => build(channel, 'POST', path, { type: 'json', value }, options)

/** @param bytes the JSON, which is sent as it is */
export const jsonTextRequest = (channel: ChannelEntry, path: string, bytes: Buffer): MediaRequest =>
  build(channel, 'POST', path, { type: 'json_text', bytes })

export const formRequest = (
  channel: ChannelEntry,
  path: string,
  parts: readonly FormPart[],
  options?: RequestOptions,
): MediaRequest => build(channel, 'POST', path, { type: 'form', parts }, options)

/** Returns a file as a part of a form. One that was never stored stays a link, which the upstream will refuse. */
export const filePart = (name: string, file: FileRef): FormPart =>
  file.from === 'url'
    ? { name, value: file.url }
    : { name, file: { key: file.key, mediaType: file.media_type, bytes: file.bytes, name: file.name } }

export const isLink = (file: FileRef): boolean => file.from === 'url'

/** Returns several parts of a path, such as `owner/name`. */
export const pathParts = (text: string): string => text.split('/').map(pathPart).join('/')

/** Returns one part of a path. A part of only dots is refused: it would leave the folder in any spelling. */
export const pathPart = (text: string): string => (/^\.+$/.test(text) ? '-' : encodeURIComponent(text))

/** Returns the request for a file of a result, with the access of the channel and nothing else of it. */
export const fileRequest = (channel: ChannelEntry, url: string, key: KeyHeader): MediaRequest => ({
  method: 'GET',
  url,
  headers: channel.auth === undefined ? key(channel) : [],
  body: null,
  ...(channel.auth !== undefined && { authorizedAs: channel }),
})

type Fields = Readonly<Record<string, unknown>>

/** Returns the fields that are defined. */
export const omitUndefined = (fields: Fields): Record<string, unknown> =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== null && value !== undefined))

/** Throws for a job of another kind than the adapter's: routing was wrong. */
export function throwNotServed(job: MediaJob): never {
  throw new Error(`no request for ${job.work}`)
}
