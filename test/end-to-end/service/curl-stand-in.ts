/** As much of curl as the printed lines use, for machines without it: `curl [-N] URL -H HEADER… [-d BODY]`. */
const headers: Record<string, string> = {}
let url = ''
let body: string | null = null
const words = process.argv.slice(2)
for (let word = words.shift(); word !== undefined; word = words.shift()) {
  if (word === '-H') {
    const [name = '', value = ''] = (words.shift() ?? '').split(': ')
    headers[name] = value
  } else if (word === '-d') body = words.shift() ?? ''
  else if (word !== '-N') url = word
}
const response = await fetch(url, { method: body === null ? 'GET' : 'POST', headers, body })
for await (const bytes of response.body ?? []) process.stdout.write(bytes)
