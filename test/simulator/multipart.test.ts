import t from 'tap'
import { FormError, readForm } from '../../simulator/requests.ts'

const TYPE = 'multipart/form-data; boundary=x1'
const field = (name: string, value: string) =>
  `--x1\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
const file = (name: string, data: string) =>
  `--x1\r\ncontent-disposition: form-data; name="${name}"; filename="a.png"\r\ncontent-type: image/png\r\n\r\n${data}\r\n`
const END = '--x1--\r\n'

t.test('fields and files are distinguished, and files keep every byte', async (t) => {
  const bytes = '\r\n--x\r\n--x2\0\xff--\r\n'
  const body = Buffer.from(`${field('n', '2')}${file('image', bytes)}${file('image[]', '')}${END}`, 'latin1')
  for (const type of [TYPE, 'Multipart/Form-Data; charset=utf-8; boundary="x1"']) {
    const form = await readForm(body, type)
    t.same(form.fields(), { n: '2' })
    const [first, second, ...others] = form.files('image', 'image[]')
    t.match(first, { name: 'image', fileName: 'a.png', type: 'image/png' })
    t.equal(first?.data.toString('latin1'), bytes)
    t.equal(second?.data.length, 0)
    t.same(others, [])
  }
})

t.test('the last of two fields with one name counts, in UTF-8', async (t) => {
  const form = await readForm(Buffer.from(`${field('prompt', 'a')}${field('prompt', 'Brød 🍞')}${END}`), TYPE)
  t.same(form.fields(), { prompt: 'Brød 🍞' })
})

t.test('what is no form, or a torn one, is refused', async (t) => {
  const whole = `${field('n', '2')}${END}`
  const refused: [string, string | undefined, RegExp][] = [
    [whole, undefined, /Not multipart/],
    [whole, 'application/json', /Not multipart/],
    [whole, 'multipart/form-data', /Not multipart/],
    ['', TYPE, /Unexpected end/],
    [whole.slice(0, -8), TYPE, /Unexpected end/],
    [whole.replace('name=', 'nome='), TYPE, /no name/],
    [field('n', '2').repeat(101) + END, TYPE, /more than 100 parts/],
  ]
  for (const [body, type, message] of refused)
    await t.rejects(readForm(Buffer.from(body), type), { constructor: FormError, message })
})
