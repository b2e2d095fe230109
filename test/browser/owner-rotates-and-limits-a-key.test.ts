/** An owner limits a key and rotates it in the console, while a program goes on calling without a failed call. */
import { setTimeout as pause } from 'node:timers/promises'
import t from 'tap'
import { eventually, until } from '../support/eventually.ts'
import { borrowService } from '../support/lend-services.ts'
import { button, heading, link, row, STORY_CONFIG, signIn, withEachHand } from './support.ts'

/** Between two calls of the program, so that the browser has its turn. */
const PAUSE_MS = 100
const KEY_NAME = 'Web server'
const CALL = { model: 'fast', messages: [{ role: 'user', content: 'Hello!' }] }

t.test('owner', async (t) => {
  const service = await borrowService(t, STORY_CONFIG)
  await withEachHand(t, 'owner rotates a key', async (t, { hand, page, look }) => {
    const user = await signIn(service, page, { name: 'Ida' })
    const { key, raw } = await service.database.keys.create({ accountId: user.accountId, name: KEY_NAME })
    const statuses: number[] = []
    let secret = raw
    let isStopped = false
    const program = (async () => {
      while (!isStopped) {
        const response = await service.chat(secret, CALL)
        await response.arrayBuffer()
        statuses.push(response.status)
        await pause(PAUSE_MS)
      }
    })()
    const moreCalls = (count: number) => {
      const before = statuses.length
      return until('the program calls', () => statuses.length >= before + count)
    }

    await hand.press(link(page, 'Keys'))
    await heading(page, 'Keys').waitFor()
    await hand.press(page.getByRole('link', { name: KEY_NAME }))
    const drawer = page.getByRole('dialog', { name: KEY_NAME })
    await hand.choose(drawer.getByLabel('Keep the old secret'), '3 days')
    await moreCalls(3)
    await hand.press(button(drawer, 'Rotate'))
    await page.getByText('Anyone who has this key can spend').waitFor()
    const shown = page.getByRole('dialog').filter({ hasText: 'Anyone who has this key can spend' })
    const [next = ''] = /sk-tollgate-[0-9a-f]{64}/.exec((await shown.textContent()) ?? '') ?? []
    t.not(next, '')
    t.not(next, raw)
    await look('key-rotated')
    await hand.press(button(shown, 'Done'))
    await drawer.getByText('the new one has not been used yet').waitFor()
    await moreCalls(3)
    secret = next
    await moreCalls(3)
    await eventually('the first use is noted', async () => {
      const { formerSecret } = await service.database.keys.show(key.id)
      return formerSecret?.successorUsedAt ?? undefined
    })
    isStopped = true
    await program
    t.same([...new Set(statuses)], [200], `${statuses.length} calls`)
    t.equal((await service.chat(raw, CALL)).status, 200, 'the former secret still works')

    await page.reload()
    await drawer.getByText('You can rotate the key again when its old secret no longer works.').waitFor()
    await look('key-rotation-in-use')
    await hand.press(button(drawer, 'End the old secret now'))
    const question = page.getByRole('dialog', { name: `End the old secret of ${KEY_NAME}` })
    t.ok(await button(question, 'End').isDisabled(), 'not before its name is typed')
    await hand.write(question.getByRole('textbox'), KEY_NAME)
    await hand.press(button(question, 'End'))
    await button(drawer, 'Rotate').waitFor()
    await until('the former secret is refused', async () => (await service.chat(raw, CALL)).status === 401)
    t.equal((await service.chat(next, CALL)).status, 200)

    await hand.write(drawer.getByLabel('Requests per minute'), '2')
    await hand.write(drawer.getByLabel('Concurrent calls'), '5')
    await hand.write(drawer.getByLabel('Allowed addresses'), '203.0.113.0/24, 2001:db8::/32')
    await hand.press(button(drawer, 'Save'))
    await drawer.getByRole('definition').filter({ hasText: '203.0.113.0/24' }).waitFor()
    await until('the address is refused', async () => (await service.chat(next, CALL)).status === 403)
    await hand.write(drawer.getByLabel('Allowed addresses'), '10.1.2.3/8')
    await hand.press(button(drawer, 'Save'))
    await drawer.getByText('write 10.0.0.0/8 for the whole network').waitFor()
    await hand.write(drawer.getByLabel('Allowed addresses'), '')
    await hand.press(button(drawer, 'Save'))
    const limited = await eventually('the limit is in force', async () => {
      const response = await service.chat(next, CALL)
      return response.status === 429 ? response : undefined
    })
    t.match(await limited!.text(), /This API key may make 2/)
    await look('key-limited')
    await hand.press(button(drawer, 'Close'))
    await row(page, KEY_NAME).waitFor()

    await hand.press(button(page, 'Create a key'))
    const form = page.getByRole('dialog', { name: 'Create a key' })
    await hand.write(form.getByLabel('Name'), 'Worker')
    await hand.write(form.getByLabel('Concurrent calls'), '3')
    await look('keys-create-limited')
    await hand.press(button(form, 'Create'))
    await page.getByRole('dialog', { name: 'Worker' }).waitFor()
    const made = (await service.database.keys.list(user.accountId)).find(({ name }) => name === 'Worker')
    t.match(made, { limits: { requestsPerMinute: null, concurrency: 3 }, allowedAddresses: null })
  })
})
