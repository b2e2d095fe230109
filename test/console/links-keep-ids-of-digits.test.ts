/** A link keeps an id of digits alone, written by hand or made by the console, however many digits it has. */
import t from 'tap'
import { printSearch, readSearch, texts } from '../../console/src/search.ts'

for (const id of ['7', '9007199254740993', '12345678901234567890', '1e5', '0.10', '007', 'call_1'])
  t.test(id, async (t) => {
    t.same(texts('task')(readSearch(`?task=${id}`)), { task: id }, 'written by hand')
    t.same(texts('task')(readSearch(printSearch({ task: id }))), { task: id }, 'made by the console')
  })

t.test('what is no text is kept as it is', async (t) => {
  t.same(readSearch('?create=true'), { create: true })
  t.same(readSearch(printSearch({ create: true })), { create: true })
  t.same(texts('task')(readSearch('?create=true&task=')), {})
})
