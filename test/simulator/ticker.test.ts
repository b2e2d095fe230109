import t from 'tap'
import { Ticker } from '../../simulator/answers/ticker.ts'

t.test('tasks run in the order of their times, a cancelled one never', async (t) => {
  const ticker = new Ticker()
  const ran: string[] = []
  const now = ticker.now()
  await new Promise<void>((done) => {
    const unwanted = () => ran.push('unwanted')
    ticker.schedule(now + 60, done)
    ticker.schedule(now + 40, () => ran.push('second'))
    ticker.schedule(now + 20, () => ran.push('first'))
    ticker.cancel(ticker.schedule(now + 30, unwanted), unwanted)
    ticker.schedule(now - 1_000, () => ran.push('overdue'))
  })
  t.same(ran, ['overdue', 'first', 'second'])
})

t.test('no task runs before its time, and one may ask for the next', async (t) => {
  const ticker = new Ticker()
  const early: number[] = []
  await new Promise<void>((done) => {
    let dueMs = ticker.now() + 3
    let left = 5
    const task = () => {
      if (ticker.now() < dueMs) early.push(left)
      left -= 1
      if (left === 0) return done()
      dueMs += 7
      ticker.schedule(dueMs, task)
    }
    ticker.schedule(dueMs, task)
  })
  t.same(early, [])
})

t.test('a stopped ticker forgets its tasks and can be used again', async (t) => {
  const ticker = new Ticker()
  let forgotten = true
  const now = ticker.now()
  ticker.schedule(now + 10, () => {
    forgotten = false
  })
  ticker.stop()
  await new Promise<void>((done) => {
    ticker.schedule(now + 30, done)
  })
  t.equal(forgotten, true)
})
