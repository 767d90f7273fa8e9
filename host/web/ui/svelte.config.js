// How Svelte compiles the components: with runes alone.

import { vitePreprocess } from '@sveltejs/vite-plugin-svelte'

export default {
  preprocess: vitePreprocess(),
  compilerOptions: { runes: true, modernAst: true },
}
