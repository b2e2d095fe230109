/** A person comes by an OpenID Connect provider: invited at first, and known afterwards. */
import t from 'tap'
import { tokenHash } from '../../src/core/keys/bearer-token.ts'
import { startProvider } from '../pipelines/management/identity-provider.ts'
import { withPage } from '../support/browser.ts'
import { borrowService } from '../support/lend-services.ts'
import { button, heading, link, STORY_CONFIG } from './support.ts'

t.test('a provider', async (t) => {
  const email = 'linus@corp.example'
  const provider = await startProvider(t, { linus: { email, email_verified: true, name: 'Linus' } })
  provider.become('linus')
  const signIn = JSON.stringify({ oidc: [provider.config] })
  const service = await borrowService(t, `sign_in: ${signIn}\n${STORY_CONFIG}`)
  provider.redirectTo(`${service.baseUrl}/console/sign-in/oidc/corp`)
  const token = 'another-invitation-of-a-test-that-nobody-guesses'
  const invitation = { accountId: null, role: null, installationRole: null }
  await service.database.createInvitation({ ...invitation, tokenHash: tokenHash(token), email })
  await withPage(t, 'provider', async (page) => {
    await page.goto(`${service.baseUrl}/console/sign-in`)
    await button(page, 'Continue with Corp').click()
    await page.getByRole('alert').getByText('Sign-up is by invitation').waitFor()
    t.notMatch(page.url(), 'code=', 'the code is in no history')

    await page.goto(`${service.baseUrl}/console/sign-up#invitation=${token}`)
    await button(page, 'Continue with Corp').click()
    await heading(page, 'Home').waitFor()
    await link(page, 'Profile & security').click()
    await page.getByText('Connected').waitFor()
    t.equal(await page.getByLabel('Email').inputValue(), email)
    await button(page, 'Disconnect').click()
    await page.getByText('This is your last way to sign in').waitFor()

    await button(page, 'Sign out').click()
    await button(page, 'Continue with Corp').click()
    await heading(page, 'Home').waitFor()
  })
})
