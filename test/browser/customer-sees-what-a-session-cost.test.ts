/** A customer sees what each run of an agent cost, follows one to its calls and narrows the log to it. */
import t from 'tap'
import { borrowService } from '../support/lend-services.ts'
import { button, callsInLog, heading, link, row, STORY_CONFIG, signIn, withEachHand } from './support.ts'

const MESSAGES = [{ role: 'user', content: 'Hello!' }]
const LONG = `nightly import of the catalogue ${'0123456789'.repeat(9)}`

t.test('a session', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)

  await withEachHand(t, 'session', async (t, { hand, page, look }) => {
    const user = await signIn(service, page, { name: 'Sam' })
    const { raw } = await service.database.keys.create({
      accountId: user.accountId,
      name: 'agent',
      accountLogs: true,
    })
    const call = (session?: string, model = 'fast') =>
      service.chat(
        raw,
        { model, messages: MESSAGES },
        { headers: session === undefined ? {} : { 'x-session-id': session } },
      )
    await hand.press(link(page, 'Usage'))
    await heading(page, 'Usage').waitFor()
    await page.getByLabel('Group by').selectOption('Session')
    await page.getByText('No call in this period belongs to a session.').waitFor()
    await look('usage-without-sessions')

    for (const session of ['run 7', 'run 7', LONG, undefined]) t.equal((await call(session)).status, 200)
    t.ok((await call('run 7', 'broken')).status >= 500)
    await callsInLog(service, raw, 5)
    await page.reload()
    const run = row(page, 'run 7')
    await run.getByText('32.00').waitFor()
    await run.getByText('broken, fast').waitFor()
    t.equal(await page.getByRole('row').count(), 3, 'a head and two sessions, the dearest first')
    await look('usage-by-session')
    const downloading = page.waitForEvent('download')
    await hand.press(button(page, 'CSV'))
    t.match((await downloading).suggestedFilename(), /^usage-by-session-.*\.csv$/)

    await hand.press(run.getByRole('link', { name: 'run 7' }))
    await heading(page, 'Calls').waitFor()
    await row(page, 'broken').waitFor()
    t.equal(await page.getByRole('row').count(), 4, 'a head and the calls of the session')
    await button(page, 'Remove the filter Session: run 7').waitFor()
    await hand.press(button(page, 'Clear'))
    await row(page, LONG).waitFor()
    await look('calls-with-sessions')
    await hand.press(row(page, LONG).getByRole('link').first())
    const drawer = page.getByRole('dialog', { name: 'Call' })
    await drawer.getByText(LONG).first().waitFor()
    await look('call-with-session')
    await hand.press(drawer.getByRole('link', { name: LONG }))
    await row(page, 'broken').waitFor({ state: 'detached' })
    await row(page, LONG).waitFor()
    t.equal(await page.getByRole('row').count(), 2)
  })
})
