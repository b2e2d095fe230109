/** The generated client: it fails wherever an answer is not a success. */
import createClient, { type Client } from 'openapi-fetch'
import type { paths } from './schema.ts'

export type TollgateClient = Client<paths>

export const openClient = (baseUrl: string, secret: string): TollgateClient =>
  createClient<paths>({ baseUrl, headers: { authorization: `Bearer ${secret}` } })

let made = 0
export const countCalls = (): number => made

/** Returns the data of a call. @throws Error with what was answered in place of a success */
export async function dataOf<Data>(
  call: Promise<{ data?: Data; error?: unknown; response: Response }>,
): Promise<NonNullable<Data>> {
  const { data, error, response } = await call
  if (!response.ok || data === undefined || data === null)
    throw new Error(`${response.url}: ${response.status} ${JSON.stringify(error)}`)
  made++
  return data
}

/** Returns an answer as the one of its forms that has this field. @throws Error where it has another */
export function withField<Data, Field extends string>(
  data: Data,
  field: Field,
): Extract<Data, Readonly<Record<Field, unknown>>> {
  if (typeof data !== 'object' || data === null || !(field in data))
    throw new Error(`there is no ${field} in ${JSON.stringify(data)}`)
  return data as Extract<Data, Readonly<Record<Field, unknown>>>
}

/** Returns the whole text of a stream. @throws Error where its closing mark is absent */
export async function readStream(
  call: Promise<{ data?: ReadableStream<Uint8Array> | null; error?: unknown; response: Response }>,
  mark: string,
): Promise<string> {
  const text = await new Response(await dataOf(call)).text()
  if (!text.includes(mark)) throw new Error(`a stream ended without ${mark}: ${text.slice(-300)}`)
  return text
}

/** Returns the form of an object, for multipart requests: each file of a list is a part. */
export function toForm(fields: object): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields))
    for (const one of [value].flat())
      if (one instanceof Blob) form.append(name, one, one instanceof File ? one.name : 'file')
      else form.append(name, String(one))
  return form
}

/** Reads until a task has ended. @throws Error where it ended in another way */
export async function untilEnded<Task extends { readonly status: string }>(
  read: () => Promise<Task>,
  wanted: readonly Task['status'][],
): Promise<Task> {
  for (let tries = 0; tries < 600; tries++) {
    const task = await read()
    if (wanted.includes(task.status)) return task
    if (['failed', 'expired', 'cancelled'].includes(task.status)) throw new Error(JSON.stringify(task))
    await new Promise((resolve) => setTimeout(resolve, 200))
  }
  throw new Error('a task did not end')
}

export function check(isTrue: boolean, what: string): void {
  if (!isTrue) throw new Error(what)
}
