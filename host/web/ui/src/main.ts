// Where the shell begins.

import { mount } from 'svelte'

import App from './App.svelte'
import './style/base.css'

const target = document.getElementById('shell')
if (!target) throw new Error('the page has no place for the shell')
mount(App, { target })
